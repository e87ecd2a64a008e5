package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// loops are loops of the shell over nodes.
var loops = regexp.MustCompile(`(?s)for node in ([^;]*); do\n(.*?)\ndone`)

// task begins a task of conn/OPERATORS.md.
func task(t *testing.T, name string, names ...string) *procedure {
	if len(names) > 0 { // else it follows another
		t.Parallel()
	}
	all, _ := manual(t, "Tasks")
	_, text, found := strings.Cut(all, "\n### "+name+"\n")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "\n## ")
	text, _, _ = strings.Cut(text, "\n### ")
	require.LessOrEqual(t, strings.Count(text, "\n"), 42, "a task is one screen")
	text = loops.ReplaceAllStringFunc(text, func(loop string) (unrolled string) {
		m := loops.FindStringSubmatch(loop)
		for node := range strings.FieldsSeq(m[1]) {
			unrolled += strings.ReplaceAll(strings.ReplaceAll(m[2], "$node", node), " || break", "") + "\n"
		}
		return unrolled
	})
	return beginText(t, strings.ReplaceAll(text, "\\\n", ""), names...)
}

// client returns one with a configuration for nodes by their names on the page.
func (p *procedure) client(nodes string, more func(*redlock.Config)) *redlock.Client {
	cfg := redlock.Config{Nodes: strings.Split(p.addrs(nodes), ","), Name: "worker-7", NodeTimeout: 10 * time.Second}
	if more != nil {
		more(&cfg)
	}
	client, err := redlock.New(cfg)
	require.NoError(p, err)
	p.Cleanup(func() { _ = client.Close() })
	return client
}

// next lists the nodes of a client's next configuration.
func (p *procedure) next(nodes string) func(*redlock.Config) {
	return func(c *redlock.Config) { c.NextNodes = strings.Split(p.addrs(nodes), ",") }
}

// plays types the commands of the task up to the first with this beginning, and requires success.
func (p *procedure) plays(until string) {
	p.Helper()
	for len(p.untyped) > 0 && (until == "" || !strings.HasPrefix(p.untyped[0], until)) {
		status, out := p.types(p.untyped[0])
		require.Equal(p, exitOK, status, out)
	}
}

// TestTasks: an operator at night finds the task, types its commands, and has the result.
func TestTasks(t *testing.T) {
	t.Parallel()
	const status = "redlock nodes -nodes a,b,c"
	t.Run("Set up three masters", func(t *testing.T) {
		p := task(t, "Set up three masters", "a", "b", "c")
		p.works(status+" -all -wait 5m", "votes", 3)
		p.works("redlock run -nodes a,b,c -wait 5s hello -- true", "", 0)
		require.Empty(t, p.untyped)
	})
	t.Run("Give clients an access list", func(t *testing.T) {
		p := task(t, "Give clients an access list", "a")
		p.plays("")
		admin := testkit.DialText(t, p.names["a"].Addr())
		require.Contains(t, admin.Do("ACL GETUSER locker"), "~lock:*")
		client, err := redlock.New(redlock.Config{Nodes: []string{"redis://locker:password@" + p.names["a"].Addr()}, NodeTimeout: 10 * time.Second})
		require.NoError(t, err)
		defer client.Close()
		require.NoError(t, client.Do(t.Context(), "lock:1", time.Minute, func(ctx context.Context) error {
			state, err := client.Inspect(t.Context(), "lock:1")
			require.NoError(t, err)
			require.Equal(t, redlock.KeyHeld, state.Status)
			return client.DoAny(t.Context(), time.Minute, []string{"lock:1", "lock:2"}, func(context.Context) error {
				_, err := client.With(redlock.Options{Wait: 100 * time.Millisecond}).AcquireAny(t.Context(), time.Minute, "lock:1", "lock:2")
				require.ErrorIs(t, err, redlock.ErrTaken)
				return ctx.Err()
			})
		}))
		require.NotRegexp(t, `exists|getrange|tracking|caching|z[a-z]+|pexpire`, admin.Do("ACL LOG"), "refused")
		_, err = client.TryAcquire(t.Context(), "orders", time.Minute)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
	})
	t.Run("Restart one master", func(t *testing.T) {
		p := task(t, "Restart one master", "a", "b", "c")
		client := p.client("a,b,c", nil)
		lock, err := client.TryAcquire(t.Context(), "orders", time.Minute)
		require.NoError(t, err)
		p.plays("")
		require.NoError(t, lock.Extend(t.Context(), time.Minute))
		requireRestarted(p, "b")
	})
	t.Run("Restart all masters", func(t *testing.T) {
		p := task(t, "Restart all masters", "a", "b", "c")
		p.maxTTL = "2s"
		client := p.client("a,b,c", func(c *redlock.Config) { c.MaxTTL = 2 * time.Second })
		require.NoError(t, client.ReadyAll(t.Context()))
		lock, err := client.Acquire(t.Context(), "orders", 2*time.Second)
		require.NoError(t, err)
		kept, stop := lock.KeepAlive(t.Context())
		defer stop()
		for range 3 {
			p.plays("redlock")
			_, _ = p.types(status + " -all -wait 5m")
			require.NoError(t, client.ReadyAll(t.Context()))
			testkit.Await(t, "the holder has written its lock again", func() bool {
				require.NoError(t, context.Cause(kept))
				for _, s := range p.names {
					if testkit.DialText(t, s.Addr()).Do("EXISTS orders") != ":1" {
						return false
					}
				}
				return true
			})
		}
		require.Empty(t, p.untyped)
		require.NoError(t, context.Cause(kept), "a lock that is kept alive survives")
		requireRestarted(p, "a", "b", "c")
	})
	t.Run("Replace a dead master now", func(t *testing.T) {
		p := task(t, "Replace a dead master now", "a", "b", "c")
		require.NoError(t, p.names["c"].Kill())
		client := p.client("a,b,c", nil)
		lock, err := client.TryAcquire(t.Context(), "orders", time.Minute)
		require.NoError(t, err, "locks go on")
		p.works(status, "down", 1)
		p.plays(status)
		p.works(status+" -all -wait 5m", "votes", 3)
		require.NoError(t, lock.Extend(t.Context(), time.Minute))
		require.Empty(t, p.untyped)
	})
	t.Run("Add two masters", func(t *testing.T) {
		p := task(t, "Add two masters", "a", "b", "c", "d", "e")
		const all = "a,b,c,d,e"
		step0, step1, step2 := p.client("a,b,c", nil), p.client("a,b,c", p.next(all)), p.client(all, nil)
		lock, err := step0.TryAcquire(t.Context(), "orders", time.Minute)
		require.NoError(t, err)
		_, err = step1.TryAcquire(t.Context(), "orders", time.Minute)
		require.ErrorIs(t, err, redlock.ErrTaken)
		p.plays(status + ",d,e")
		require.NoError(t, lock.Release(t.Context()))
		lock, err = step1.Acquire(t.Context(), "orders", time.Minute)
		require.NoError(t, err)
		_, err = step2.TryAcquire(t.Context(), "orders", time.Minute)
		require.ErrorIs(t, err, redlock.ErrTaken)
		require.NoError(t, lock.Release(t.Context()))
		p.works("redlock nodes -nodes a,b,c,d,e -wait 5m", "votes", 3)
		_, err = step2.Acquire(t.Context(), "orders", time.Minute)
		require.NoError(t, err)
		require.Empty(t, p.untyped)
	})
	t.Run("Upgrade", func(t *testing.T) {
		p := task(t, "Upgrade", "a")
		p.client("a", nil)
		_, out := p.types("redis-cli -h a CLIENT LIST")
		require.Contains(t, out, "name=worker-7")
		if strings.Contains(out, "lib-name=") { // from Redis 7.2 on
			require.Contains(t, out, "lib-ver=0.")
		}
		require.Empty(t, p.untyped)
	})
	t.Run("A lock hangs", func(t *testing.T) {
		p := task(t, "A lock hangs", "a", "b", "c")
		lock, err := p.client("a,b,c", nil).TryAcquire(t.Context(), "orders", time.Minute)
		require.NoError(t, err)
		p.works("redlock inspect -nodes a,b,c orders", "worker-7", 1)
		p.works("redis-cli -h a CLIENT LIST", "name=worker-7", 1)
		p.works("redlock break -nodes a,b,c -yes orders", "", 0)
		_, out := p.run("redlock inspect -nodes a,b,c orders")
		require.Contains(t, out, "free")
		require.Error(t, lock.Extend(t.Context(), time.Minute), "its holder notices")
		require.Empty(t, p.untyped)
	})
	t.Run("No quorum at night", func(t *testing.T) {
		p := task(t, "No quorum at night", "a", "b", "c")
		require.NoError(t, p.names["b"].Kill())
		require.NoError(t, p.names["c"].Kill())
		p.wait = "1s"
		code, out := p.types(status)
		p.wait = "1m"
		require.Equal(t, exitNoQuorum, code)
		for _, name := range []string{"b", "c"} {
			require.Regexp(t, p.names[name].Addr()+".*connection refused", out)
		}
		require.NoError(t, p.names["b"].Restart())
		p.works(status+" -wait 5m", "votes", 2)
		require.Empty(t, p.untyped)
	})
	t.Run("An alert fires", func(t *testing.T) { // the alerts of bench/metrics, whose test reads the page
		require.Empty(t, task(t, "An alert fires").untyped)
	})
	t.Run("After a FLUSHALL", func(t *testing.T) {
		p := task(t, "After a FLUSHALL", "a", "b", "c")
		p.flush("b")
		p.plays("")
		requireRestarted(p, "b")
	})
	t.Run("Fencing", func(t *testing.T) {
		const all = " -nodes a,b,c -max-ttl 1m"
		p := task(t, "Begin fencing", "a", "b", "c")
		p.works("redlock fence init"+all, "votes", 2)
		p.works("redlock fence status"+all, "votes", 3)
		require.Empty(t, p.untyped)
		client := p.client("a,b,c", func(c *redlock.Config) { c.Fenced, c.MaxTTL = true, 100*time.Millisecond })
		grant := func() uint64 {
			lock, err := client.Acquire(t.Context(), "orders", 100*time.Millisecond)
			for err != nil { // on a busy machine
				require.NotErrorIs(t, err, redlock.ErrForgotten)
				lock, err = client.Acquire(t.Context(), "orders", 100*time.Millisecond)
			}
			defer lock.Release(t.Context())
			return lock.Fence()
		}
		first := grant()

		lost := task(t, "A fenced master has lost its tokens")
		lost.names = p.names
		p.flush("b")
		lost.works("redlock fence status"+all, "votes", 3)
		require.Empty(t, lost.untyped)
		second := grant()
		require.Greater(t, second, first)

		gone := task(t, "Most fenced masters have lost their tokens")
		gone.names = p.names
		p.flush("a,b,c")
		gone.works("redlock fence recover"+all+" -at-least 1790000000000000", "votes", 2)
		gone.works("redlock fence status"+all, "votes", 3)
		require.Empty(t, gone.untyped)
		require.Greater(t, grant(), uint64(1790000000000000))
	})
	t.Run("all of them", func(t *testing.T) { // and each chapter is among the contents
		all, tasks := manual(t, "Tasks")
		head, _, _ := strings.Cut(all, "\n## ")
		source, err := os.ReadFile("tasks_test.go")
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(all, -1) {
			require.True(t, m[1] == "Tasks" || strings.Contains(head, "["+m[1]+"](#"), m[1])
		}
		for _, m := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(tasks, -1) {
			require.Contains(t, head, "["+m[1]+"](#")
			require.Contains(t, string(source), `task(t, "`+m[1]+`"`)
		}
	})
}

// requireRestarted requires servers to have begun anew.
func requireRestarted(p *procedure, names ...string) {
	p.Helper()
	for _, name := range names {
		require.Equal(p, 1, p.starts[name], name)
	}
}
