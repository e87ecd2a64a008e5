package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

// machine is a container with systemd as its first process: the files of this machine, where what is written is in memory and gone
// with it, and its network, so that the servers of a test are there.
type machine struct {
	*testing.T
	first   string // the process
	written string // what was written, as seen from here
}

// boot starts one, or skips the test where that cannot be had.
func boot(t *testing.T) *machine {
	for _, tool := range []string{"systemd-nspawn", "unshare", "nsenter", "dpkg"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool, " is not here (Debian: systemd-container)")
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("a machine of its own wants root")
	}
	dir := t.TempDir()
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-ec", `
		mount -t tmpfs none "$PWD"; cd "$PWD"
		mkdir written work root
		mount -t overlay overlay -o lowerdir=/,upperdir=written,workdir=work root || exit 77
		rm -f root/etc/machine-id root/var/lib/man-db/auto-update # the index of all pages is not the test's
		exec systemd-nspawn --quiet --keep-unit --register=no --console=pipe --resolv-conf=off --timezone=off --directory=root --boot systemd.unit=basic.target`)
	cmd.Dir = dir
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	m := &machine{T: t}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		if m.first != "" {
			_ = exec.Command("kill", "-KILL", m.first).Run()
		}
		_ = cmd.Process.Kill()
		<-ended
	})
	own := fmt.Sprint(cmd.Process.Pid)
	m.written = filepath.Join("/proc", own, "root", dir, "written")
	last := ""
	for deadline := time.Now().Add(testkit.Patience); ; {
		select {
		case err := <-ended:
			ended <- err
			t.Skipf("systemd does not start in a container here: %v: %s", err, log.String())
		case <-time.After(50 * time.Millisecond):
		}
		children, _ := os.ReadFile(filepath.Join("/proc", own, "task", own, "children"))
		for _, pid := range strings.Fields(string(children)) {
			if name, _ := os.ReadFile(filepath.Join("/proc", pid, "comm")); string(name) == "systemd\n" {
				m.first = pid
			}
		}
		if m.first != "" {
			out, _ := m.try("systemctl is-active basic.target")
			if out == "active\n" {
				return m
			}
			last = out
		}
		if time.Now().After(deadline) {
			t.Skipf("systemd did not start in a container: %s %s", last, log.String())
		}
	}
}

// try runs a command of the shell in the machine.
func (m *machine) try(command string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*testkit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", "-t", m.first, "-m", "-u", "-i", "-p", "-C", "--root", "sh", "-c", command)
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run is try of what must work.
func (m *machine) run(command string) string {
	m.Helper()
	out, err := m.try(command)
	if err != nil {
		log, _ := m.try("journalctl --no-pager -n 20 -o cat 2>/dev/null")
		require.NoError(m, err, "%s: %s\n%s", command, out, log)
	}
	return strings.TrimSpace(out)
}

// put writes a file.
func (m *machine) put(name string, data []byte, mode os.FileMode) {
	m.Helper()
	require.NoError(m, os.WriteFile(filepath.Join("/proc", m.first, "root", name), data, mode))
}

// traces are the files that were written, or removed, with a word in their name.
func (m *machine) traces(word string) (found []string) {
	require.NoError(m, filepath.WalkDir(m.written, func(name string, d os.DirEntry, err error) error {
		if err == nil && strings.Contains(name[len(m.written):], word) && d.Type()&os.ModeCharDevice == 0 {
			found = append(found, name[len(m.written):])
		}
		return nil
	}))
	return found
}
