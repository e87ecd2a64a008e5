package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/network/checker"
	"github.com/redlock-go/redlock/bench/network/history"
	"github.com/redlock-go/redlock/bench/network/lab"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// needsLab skips a test on a machine without one.
func needsLab(t *testing.T) {
	if err := lab.Missing(); err != nil {
		t.Skip("no lab on this machine: ", err)
	}
}

// build builds the programs of a run from the module with a root.
func build(t *testing.T, root string) lab.Tools {
	dir := t.TempDir()
	t.Helper()
	for name, pkg := range map[string]string{"network": ".", "redlock": "github.com/redlock-go/redlock/internal/cmd/redlock"} {
		cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, name), pkg)
		cmd.Dir = filepath.Join(root, "bench", "network")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return lab.Tools{Client: filepath.Join(dir, "network"), Redlock: filepath.Join(dir, "redlock")}
}

// check runs a setup, and judges it.
func check(t *testing.T, s history.Setup, tools lab.Tools) *checker.Verdict {
	t.Helper()
	dir := t.TempDir()
	s.Name = name(s)
	require.NoError(t, lab.Run(context.Background(), s, dir, tools))
	v, err := verdict(dir)
	if errors.Is(err, errStarved) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return v
}

// TestClaims: one process has a run, until it ends; none has a run that is done.
func TestClaims(t *testing.T) {
	dir := t.TempDir()
	first, err := claim(dir, "run")
	require.NoError(t, err)
	require.NotNil(t, first)
	second, err := claim(dir, "run")
	require.NoError(t, err)
	assert.Nil(t, second)
	require.NoError(t, first.Close())
	second, err = claim(dir, "run")
	require.NoError(t, err)
	require.NotNil(t, second)
	require.NoError(t, second.Close())
	require.NoError(t, os.Mkdir(filepath.Join(dir, "run"), 0o755))
	require.NoError(t, (&checker.Verdict{}).Save(filepath.Join(dir, "run")))
	third, err := claim(dir, "run")
	require.NoError(t, err)
	assert.Nil(t, third)
}

// TestKilled: nothing of a lab outlives it, also where it is killed.
func TestKilled(t *testing.T) {
	needsLab(t)
	tools := build(t, filepath.Join("..", ".."))
	dir := t.TempDir()
	cmd := exec.Command(tools.Client, "-o", dir, "-serve=false", "-mix", "calm", "-seed", "1")
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	require.Eventually(t, func() bool { return len(inside(t, dir)) >= 9 }, testkit.Patience, 50*time.Millisecond, "five masters and four clients")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return len(inside(t, dir)) == 0 }, testkit.Patience, 50*time.Millisecond)
}

// inside are the processes that have a folder among their arguments or as their title.
func inside(t *testing.T, dir string) (pids []string) {
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, p := range all {
		line, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		cwd, _ := os.Readlink(filepath.Join(p, "cwd"))
		if strings.HasPrefix(cwd, dir) || bytes.Contains(line, []byte(dir)) && bytes.Contains(line, []byte("client\x00")) {
			pids = append(pids, p)
		}
	}
	return pids
}

// TestSeeds: ten runs keep every promise. One of them is a step of .ci/run.
func TestSeeds(t *testing.T) {
	if !testkit.Long() {
		t.Skip("ten minutes: REDLOCK_LONG=1")
	}
	needsLab(t)
	tools := build(t, filepath.Join("..", ".."))
	for i, mix := range []string{"all", "every", "partition", "packets", "silence", "process", "restart", "reset", "all", "every"} {
		s := history.Setup{Seed: uint64(401 + i), Mix: mix, Library: history.Ours, Faults: 42 * time.Second, Calm: 8 * time.Second, Fenced: i%2 == 1, Serve: i%3 != 2}
		s.Groups, s.Change = i == 3 || i == 8, i == 5 || i == 8
		t.Run(name(s), func(t *testing.T) {
			v := check(t, s, tools)
			assert.Empty(t, v.Violations, "%s", v)
		})
	}
}

// TestBrokenClients: mistakes of a lock client are found, and the client without them has none of these.
func TestBrokenClients(t *testing.T) {
	if !testkit.Long() {
		t.Skip("three minutes: REDLOCK_LONG=1")
	}
	needsLab(t)
	tools := build(t, filepath.Join("..", ".."))
	for library, broken := range map[string]bool{history.ByHand: false, history.NoToken: true, history.NoValidity: true, history.NoElapsed: true, history.NoDrift: true, history.Half: true} {
		mix := "partition"
		if library == history.NoElapsed {
			mix = "delay"
		}
		seeds := uint64(1) // a mistake may take more: whether it shows depends on packets
		if broken {
			seeds = 5
		}
		t.Run(library, func(t *testing.T) {
			var found []string
			for seed := range seeds {
				s := history.Setup{Seed: 18 + seed, Mix: mix, Library: library, Faults: 15 * time.Second, Calm: 4 * time.Second, Compared: true}
				v := check(t, s, tools)
				if broken == (v.Broken()[checker.Overlap] > 0) {
					return
				}
				found = append(found, fmt.Sprint(v))
			}
			t.Error(found)
		})
	}
}

// TestSeededDefects: defects of the library that need a network are found. They are those of the mutants' list.
func TestSeededDefects(t *testing.T) {
	if !testkit.Long() {
		t.Skip("ten minutes: REDLOCK_LONG=1")
	}
	needsLab(t)
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command("go", "run", "./internal/test/mutants", "-run", "^"+d.name+"$", "-into", dir)
			cmd.Dir = filepath.Join("..", "..")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			tools := build(t, dir)
			var found []string
			for seed := range uint64(3) {
				s := d.setup
				s.Library, s.Seed, s.Faults, s.Calm = history.Ours, seed+1, 20*time.Second, 6*time.Second
				v := check(t, s, tools)
				found = append(found, fmt.Sprint(v.Broken()))
				if v.Broken()[d.rule] > 0 {
					return
				}
			}
			t.Errorf("%s: not found; %v", d.rule, found)
		})
	}
}

// defects are names of internal/test/mutants/defects.txt, each with the rule that it breaks here, and where.
var defects = []struct {
	name, rule string
	setup      history.Setup
}{
	{"release-script-deletes-any", checker.Overlap, history.Setup{Mix: "silence"}},
	{"passed-on-by-validity", checker.Overlap, history.Setup{Mix: "calm"}},
	{"failed-acquire-not-released", checker.KeyKept, history.Setup{Mix: "packets"}},
	{"sent-counts-as-absent", checker.KeyKept, history.Setup{Mix: "lost-replies,reset"}},
	{"silent-connection-kept", checker.Unavailable, history.Setup{Mix: "stale"}},
	{"line-is-always-taken", checker.FalseTaken, history.Setup{Mix: "cut,stop-master"}},
	{"set-not-given-back", checker.Unavailable, history.Setup{Mix: "calm"}},
	{"no-attempt-is-a-grant", checker.FalseTaken, history.Setup{Mix: "cut,stop-master"}},
	{"endless-log", checker.Noise, history.Setup{Mix: "reset"}},
	{"passed-on-token-not-counted", checker.Token, history.Setup{Mix: "delay", Fenced: true}},
	{"release-deletes-the-others", checker.Overlap, history.Setup{Mix: "calm"}},
	{"close-delivers-late", checker.KeyKept, history.Setup{Mix: "cut,link"}},
	{"lost-attempt-keeps-its-votes", checker.KeyKept, history.Setup{Mix: "cut"}},
	{"elapsed-is-ignored", checker.Overlap, history.Setup{Mix: "delay"}},
	{"drift-is-ignored", checker.Overlap, history.Setup{Mix: "calm"}},
	{"name-passed-on", checker.Misnamed, history.Setup{Mix: "calm"}},
	{"moving-key-in-its-new-group-alone", checker.Overlap, history.Setup{Mix: "calm", Groups: true, Change: true}},
}
