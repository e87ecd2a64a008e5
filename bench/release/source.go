package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// source is a checkout, and what a release of it is called.
type source struct {
	root    string
	version string // without v
	commit  string
	at      time.Time // of the commit
	isDry   bool
	notes   string // the section of CHANGELOG.md
	license []byte
}

var (
	versionLine = regexp.MustCompile(`(?m)^const Version = "(.+)"$`)
	section     = regexp.MustCompile(`(?m)^## \[(.+)\] - (.+)$`)
	reference   = regexp.MustCompile(`(?m)^\[.+\]: http.*\n?`)
)

// readSource reads a checkout. A release has a tag, a clean tree, and the same version in the tag, the source and CHANGELOG.md.
func readSource(ctx context.Context, root string, isDry bool) (*source, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	s := &source{root: root, isDry: isDry}
	read := func(name string) string {
		text, e := os.ReadFile(filepath.Join(root, name))
		err = errors.Join(err, e)
		return string(text)
	}
	changes, constant := read("CHANGELOG.md"), read("internal/base/build/build.go")
	s.license = []byte(read("LICENSE"))
	git := func(args ...string) string {
		out, e := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
		if e != nil {
			err = errors.Join(err, fmt.Errorf("git %s: %w", args[0], e))
		}
		return strings.TrimSpace(string(out))
	}
	s.commit = git("rev-parse", "HEAD")
	date, state := git("show", "-s", "--format=%cI", "HEAD"), git("status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if s.at, err = time.Parse(time.RFC3339, date); err != nil {
		return nil, err
	}
	first := section.FindStringSubmatch(changes)
	if m := versionLine.FindStringSubmatch(constant); m != nil && first != nil {
		s.version = m[1]
	}
	if s.version == "" || s.version != first[1] {
		return nil, fmt.Errorf("the source is version %q, and the first section of CHANGELOG.md is another", s.version)
	}
	s.notes = notes(changes, s.version)
	if isDry {
		s.version += "-dev"
		return s, nil
	}
	_, dated := time.Parse(time.DateOnly, first[2])
	switch tags := strings.Fields(git("tag", "--points-at", "HEAD")); {
	case err != nil:
		return nil, err
	case len(tags) != 1 || tags[0] != "v"+s.version:
		return nil, fmt.Errorf("HEAD has the tags %q: want v%s, the version of the source", tags, s.version)
	case state != "":
		return nil, fmt.Errorf("files were changed since the commit:\n%s", state)
	case dated != nil:
		return nil, fmt.Errorf("the section of CHANGELOG.md is from %q: want a day, such as 2026-11-28", first[2])
	}
	return s, nil
}

// notes is the text of a release: its section of the changelog.
func notes(changes, version string) string {
	_, text, _ := strings.Cut(changes, "\n## ["+version+"]")
	_, text, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return strings.TrimSpace(reference.ReplaceAllString(text, "")) + "\n"
}
