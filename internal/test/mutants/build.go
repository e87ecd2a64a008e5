package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// mutate returns the tree with a defect in.
func (t tree) mutate(d defect, dir string) (tree, error) {
	t.dir, t.changed = dir, map[string]string{}
	for _, h := range d.hunks {
		e, err := t.apply(h)
		if err != nil {
			return t, err
		}
		t.changed[e.file] = e.text
	}
	return t, t.overlay()
}

// overlay writes what the go command lays over the module: no other file has a copy.
func (t tree) overlay() error {
	replace := map[string]string{}
	for file, text := range t.changed {
		replace[file] = filepath.Join(t.dir, fmt.Sprint(len(replace))+filepath.Ext(file))
		if err := os.WriteFile(replace[file], []byte(text), 0o644); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(t.overlaid(), text, 0o644)
}

func (t tree) overlaid() string { return filepath.Join(t.dir, "overlay.json") }

// environ has the go command see the defect, also where a test calls it.
func (t tree) environ() []string {
	if t.changed == nil {
		return os.Environ()
	}
	return append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+t.overlaid())
}

// command runs the go command.
func (t tree) command(args ...string) (out []byte, err error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = t.root, t.environ()
	return cmd.CombinedOutput()
}

// build builds the test of the package in a folder, once, and returns the binary.
func (t tree) build(dir string, flags ...string) (binary string, err error) {
	// Without the names of folders in it a package that is built once is found in the cache by every tree.
	args := append([]string{"test", "-trimpath", "-ldflags=-s -w", "-c"}, flags...)
	binary = filepath.Join(t.dir, hash(append(flags, dir)...))
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if out, err := t.command(append(args, "-o", binary, "./"+dir)...); err != nil {
		return "", fmt.Errorf("%s", firstLines(out))
	}
	return binary, nil
}

// hash is short, and enough for what a list has.
func hash(texts ...string) string {
	return fmt.Sprintf("%.4x", sha256.Sum256([]byte(strings.Join(texts, "\x00"))))
}

// firstLines is the beginning of the compiler's output.
func firstLines(out []byte) string {
	lines := strings.SplitN(string(out), "\n", 5)
	return strings.Join(lines[:min(len(lines), 4)], "\n\t")
}

// copyTo copies the files known to git, or new to it, into a folder.
func (t tree) copyTo(dir string) error {
	out, err := exec.Command("git", "-C", t.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		text, err := t.read(filepath.Join(t.root, name))
		if os.IsNotExist(err) {
			continue // deleted, and still in git's index
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
