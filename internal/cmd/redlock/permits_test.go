//go:build unix

package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestPermitOf: only the key of a permit has a name and a number.
func TestPermitOf(t *testing.T) {
	for _, name := range []string{"build", "a{t}b", "x:permit:3", "{"} {
		for i, key := range redlock.Permits(name, 64) {
			got, number := permitOf(key)
			require.Equal(t, name, got)
			require.Equal(t, i+1, number)
		}
	}
	for _, key := range []string{"build", "build:permit:1", "{build}:permit:0", "{build}:permit:65", "{build}:permit:x"} {
		name, number := permitOf(key)
		require.Zero(t, number, "%s %s", key, name)
	}
	for text, want := range map[string]int{"web1:47/3": 3, "web1:47": 0, "a/b": 0, "a/1": 0, "a/65": 0} {
		name, n := amongOf(text)
		require.Equal(t, want, n)
		require.Equal(t, n == 0, name == text)
	}
}

// TestPermits: with -n 3 three run at once, and a fourth is refused, or waits for one of them. An operator sees the permits of run -n by their name. A user who mixes them with the name alone, or with
// another number, is told so.
func TestPermits(t *testing.T) {
	t.Parallel()
	servers := cluster.Start(t, 3)
	dir, gate := t.TempDir(), filepath.Join(t.TempDir(), "gate")
	var all []*process
	start := func(settings ...string) *process {
		ready := filepath.Join(dir, strconv.Itoa(len(all)))
		p := launch(t, servers, binary(append([]string{"run"}, flags(30, append(settings, "build", "--", "sh", "-c", waits, ready, gate)...)...)...))
		awaitFile(t, ready)
		all = append(all, p)
		return p
	}
	for range 3 {
		start("-n", "3")
	}
	out := expect(t, servers, exitOK, "held build")
	require.Equal(t, 3, strings.Count(out, "\n"), out)
	for i := range 3 {
		require.Regexp(t, `(?m)^build  \S+:\d+ +\w+ +[\d.]+s +permit `+strconv.Itoa(i+1)+` of 3$`, out)
	}
	require.Equal(t, 3, strings.Count(expect(t, servers, exitOK, "held -n 3 build"), " of 3"))
	require.Contains(t, expect(t, servers, exitOK, "inspect build"), `"build" has 3 of 3 permits in use`)
	out = expect(t, servers, exitOK, "inspect -json build")
	require.Equal(t, 3, strings.Count(out, `"of": 3`), out)
	expect(t, servers, exitFailed, "held other")
	fourth := func(settings ...string) *process {
		return launch(t, servers, binary(append([]string{"run"}, flags(30, append(settings, "-n", "3", "build", "--", "echo", "run")...)...)...))
	}
	refused, waiting := fourth(), fourth("-wait", "forever")
	require.Equal(t, exitTaken, refused.status())
	require.Empty(t, refused.out.String())

	mixed := start()
	mixed.awaits("build: it has 3 of 3 permits in use as well (-n, by ")
	require.Contains(t, expect(t, servers, exitOK, "inspect build"), "do not exclude each other")
	require.Contains(t, expect(t, servers, exitOK, "held -n 3 build"), "permit 2 of 3")
	start("-q", "-n", "5").awaits("build: it is held without -n as well (by ")
	require.Empty(t, waiting.out.String())
	write(t, gate, "")
	for _, p := range append(all, waiting) {
		require.Zero(t, p.status(), &p.err)
	}
	require.Equal(t, "run\n", waiting.out.String())
	awaitFree(t, servers, append(redlock.Permits("build", 5), "build")...)

	c := cluster.Connect(t, strings.Split(nodesOf(servers), ","), holder("a/3"))
	permits := redlock.Permits("build", 3)
	for _, key := range permits[1:] {
		cluster.MustAcquire(t, c, key, cluster.TTL)
	}
	gate = filepath.Join(t.TempDir(), "gate")
	p := start("-n", "4")
	p.awaits("build: permit 2 of 3 is in use (by a), and -n is 4 here: all must use the same")
	write(t, gate, "")
	require.Zero(t, p.status())
	_, _, errs := redlockOn(t, servers, "break", "-yes", "build")
	require.Contains(t, errs, `"build" has 2 of 3 permits in use: -yes releases all of them with -n`)
	tool := command{vars: map[string]string{patient: "10s", "REDLOCK_NODES": nodesOf(servers)}, in: "n\ny\n"}
	require.Equal(t, exitOK, tool.run(t.Context(), "break", "build"))
	awaitHeld(t, servers, permits[1])
	awaitFree(t, servers, permits[2])
	expect(t, servers, exitOK, "break -yes -n 3 build")
	awaitFree(t, servers, permits...)
}
