package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestContextErrors of contexts that have ended come back as they are, and no command is sent.
func TestContextErrors(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("a cause of one's own"))
	late, cancelLate := context.WithDeadline(t.Context(), time.Now())
	defer cancelLate()
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := cluster.New(t, 3, cluster.Portable(portable))
		var none context.Context // as context.Background()
		require.NoError(t, r.Do(none, "other", ttl, nothing))
		l := testkit.Must(r.TryAcquire(none, "held", ttl))(t)
		require.NoError(t, l.Extend(none, ttl))
		for ctx, want := range map[context.Context]error{ended: context.Canceled, late: context.DeadlineExceeded} {
			require.Equal(t, want, errorOf(r.TryAcquire(ctx, "k", ttl)))
			for _, err := range []error{
				errorOf(r.Acquire(ctx, "k", ttl)), errorOf(r.AcquireAll(ctx, ttl, "k")), r.Do(ctx, "k", ttl, nothing),
			} {
				gaveUp := testkit.As[*redlock.AcquireError](t, err)
				require.Equal(t, "k", gaveUp.Key)
				require.Zero(t, gaveUp.Attempts)
				requireOnly(t, err, want)
			}
			require.Equal(t, want, l.Extend(ctx, ttl))
			require.ErrorIs(t, r.TryDo(ctx, "k", ttl, nothing), want)
			require.ErrorIs(t, errorOf(r.Attach(ctx, "k", foreign, time.Now().Add(ttl))), want)
			_, err := r.Inspect(ctx, "k")
			require.ErrorIs(t, err, want)
		}
		require.NoError(t, l.Release(none))
		for _, e := range r.Recorders {
			require.Empty(t, e.Calls("SET", "k"))
		}
	})
}

// TestRefusedCalls: a hopeless call is refused without a command, and the error names the fault, but
// no value of a lock.
func TestRefusedCalls(t *testing.T) {
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		ctx, late := t.Context(), time.Now().Add(ttl)
		held := cluster.MustAcquire(t, r.Client, "held", ttl)
		sent := cluster.Settle(t, r.Client).Operations
		var many []string
		for i := range 65 {
			many = append(many, fmt.Sprint(i))
		}
		f := func(context.Context) error {
			t.Error("it was called")
			return nil
		}
		type refused struct {
			want string
			err  error
		}
		all := []refused{
			{"key is empty", r.Do(ctx, "", ttl, f)},
			{"30ms", r.Do(ctx, "k", 29*time.Millisecond, f)},
			{"TryDo needs 30ms", r.TryDo(ctx, "k", 29*time.Millisecond, f)},
			{"no function", r.Do(ctx, "k", ttl, nil)},
			{"no function", r.TryDo(ctx, "k", ttl, nil)},
			{"no keys", errorOf(r.AcquireAll(ctx, ttl))},
			{"65 keys", errorOf(r.AcquireAll(ctx, ttl, many...))},
			{"empty", errorOf(r.AcquireAll(ctx, ttl, "b", ""))},
			{"ttl", errorOf(r.AcquireAll(ctx, time.Millisecond, "b", "a"))},
			{"0 bytes", errorOf(r.Attach(ctx, "k", "", late))},
			{"257 bytes", errorOf(r.Attach(ctx, "k", strings.Repeat("x", 257), late))},
			{"ended", errorOf(r.Attach(ctx, "k", foreign, time.Now()))},
			{"empty", errorOf(r.Attach(ctx, "", foreign, late))},
			{"empty", func() error { _, err := r.Inspect(ctx, ""); return err }()},
		}
		for want, c := range map[string]struct {
			key string
			ttl time.Duration
		}{
			"key is empty, 1 to 4096 bytes are allowed": {"", ttl},
			"key has 4097 bytes":                        {strings.Repeat("k", redlock.MaxKey+1), ttl},
			"ttl is 0s":                                 {"k", 0},
			"ttl is 1ns":                                {"k", 1},
			"ttl is -1ns":                               {"k", -1},
			"ttl is -1s":                                {"k", -time.Second},
			"ttl is 9.999999ms, from 10ms to 8760h0m0s are allowed": {"k", redlock.MinTTL - 1},
			"ttl is 8760h0m0.001s": {"k", redlock.MaxTTL + time.Millisecond},
		} {
			all = append(all, refused{want, errorOf(r.TryAcquire(ctx, c.key, c.ttl))}, refused{want, errorOf(r.Acquire(ctx, c.key, c.ttl))})
			if c.key == "k" {
				all = append(all, refused{want, held.Extend(ctx, c.ttl)})
			}
		}
		for _, c := range all {
			require.ErrorContains(t, c.err, c.want)
			require.ErrorIs(t, c.err, redlock.ErrArgument)
			require.NotContains(t, c.err.Error(), foreign[:21])
		}
		done := func(*redlock.Op) {}
		for _, op := range []*redlock.Op{nil, {Done: done}, cluster.ReleaseOp("k"), {Kind: redlock.OpRelease, Key: []byte("k"), Done: done}, {Kind: 4, Key: []byte("k"), Done: done}} {
			require.ErrorIs(t, r.Submit(op), redlock.ErrArgument)
			require.False(t, r.Cancel(op))
		}
		require.Equal(t, sent, cluster.Settle(t, r.Client).Operations)
		require.Greater(t, held.Remaining(), ttl-testkit.Patience, "nothing is lost by it")

		hurried, cancel := context.WithTimeout(ctx, brief/10)
		defer cancel()
		require.ErrorIs(t, r.Do(hurried, "held", ttl, f), context.DeadlineExceeded)
		for _, least := range []time.Duration{redlock.MinTTL, redlock.MaxTTL} {
			l := testkit.Must(r.Acquire(ctx, "k", least))(t)
			require.NoError(t, l.Release(ctx))
		}
		busy := cluster.New(t, 3, func(cfg *redlock.Config) { cfg.MaxWaiting = 2 })
		require.ErrorContains(t, errorOf(busy.TryAcquireAll(ctx, ttl, "a", "b", "c")), "3 keys, and MaxWaiting is 2")
		require.Zero(t, cluster.Settle(t, busy.Client).Operations)
	})
}

// errorOf is the error of a call with another result, too.
func errorOf(_ redlock.Lock, err error) error { return err }

// sentinels are the errors by which callers distinguish results.
var sentinels = []error{
	redlock.ErrTaken, redlock.ErrSplit, redlock.ErrNoQuorum, redlock.ErrNoAnswer, redlock.ErrExpired, redlock.ErrNotHeld, redlock.ErrClosed, redlock.ErrBusy,
	redlock.ErrConfig, redlock.ErrArgument, redlock.ErrStopped, redlock.ErrForgotten, context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded,
}

// requireOnly requires that an error is these of the sentinels and no other.
func requireOnly(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, s := range sentinels {
		require.Equal(t, testkit.IsAny(s, want...), errors.Is(err, s), "%v in %v", s, err)
	}
}

// nodeFailures are reasons for nodes without a vote. Each is done to all servers, before or after
// the client has connected.
var nodeFailures = map[string]struct {
	change func(c *redlock.Config)
	before func(s *fakeredis.Server)
	after  func(s *fakeredis.Server)
	slow   bool // in virtual time, not on sockets
}{
	"refused":            {before: (*fakeredis.Server).Down},
	"handshake hangs":    {before: (*fakeredis.Server).Hang},
	"loading":            {before: func(s *fakeredis.Server) { s.ErrorReply("INFO", "LOADING dataset", 0) }},
	"crowded":            {before: func(s *fakeredis.Server) { s.RejectConns("ERR max number of clients reached") }},
	"dies":               {after: (*fakeredis.Server).Down},
	"silent":             {after: (*fakeredis.Server).Hang},
	"silent and stalled": {after: (*fakeredis.Server).Hang, change: func(c *redlock.Config) { c.StallTimeout, c.NodeTimeout = 20*time.Millisecond, testkit.Patience }},
	"reset":              {after: func(s *fakeredis.Server) { s.DropConn("SET", 0) }},
	"cut":                {after: func(s *fakeredis.Server) { s.ResetMidReply("SET", 0) }},
	"read only":          {after: func(s *fakeredis.Server) { s.ErrorReply("SET", "READONLY You can't write", 0) }},
	"out of memory":      {after: func(s *fakeredis.Server) { s.ErrorReply("SET", "OOM command not allowed", 0) }},
	"misfit":             {after: func(s *fakeredis.Server) { s.WrongReply("SET", ":7\r\n", 0) }},
	"malformed":          {after: func(s *fakeredis.Server) { s.WrongReply("SET", "HTTP/1.1 200 OK\r\n", 0) }},
	"in quarantine":      {change: func(c *redlock.Config) { c.MaxTTL = time.Hour }},
	"black hole":         {change: func(c *redlock.Config) { c.Dialer = blackHole }},
	"Dialer of another client": {change: func(c *redlock.Config) {
		c.Dialer = func(context.Context, string, string) (net.Conn, error) { return nil, errors.Join(sentinels...) }
	}},
	"Credentials": {slow: true, change: func(c *redlock.Config) {
		c.Credentials = func(ctx context.Context, _ string) (string, string, error) {
			<-ctx.Done()
			return "", "", fmt.Errorf("vault: %w", context.Cause(ctx))
		}
	}},
	"read times out": {change: dialing(func(_ string, c *userConn) { // once a lock was asked for
		var writes atomic.Int64
		c.write = func(b []byte) (int, error) {
			if writes.Add(1) > 1 { // after the handshake
				_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
			}
			return c.Conn.Write(b)
		}
		c.read = func(b []byte) (int, error) { // a reply may come before the deadline is noticed, on a busy machine
			if n, err := c.Conn.Read(b); writes.Load() <= 1 {
				return n, err
			}
			return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
		}
	})},
}

// blackHole is a Dialer without an answer until it is given up.
func blackHole(ctx context.Context, network, addr string) (net.Conn, error) {
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
}

// TestErrorsAreDisjoint: an attempt failed by its nodes is ErrNoQuorum and nothing else, for every
// failure. Neither do the nodes' own errors wrap the error of a context unknown to all callers.
func TestErrorsAreDisjoint(t *testing.T) {
	for name, f := range nodeFailures {
		run := cluster.Run
		if !f.slow {
			run = func(t *testing.T, name string, test func(t *testing.T)) {
				t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
			}
		}
		run(t, name, func(t *testing.T) {
			servers := cluster.Start(t, 3)
			if f.before != nil {
				servers.Each(f.before)
			}
			r := cluster.Of(t, servers, cluster.DefaultTimeouts, func(c *redlock.Config) {
				c.DialTimeout = 50 * time.Millisecond
				if f.change != nil {
					f.change(c)
				}
			})
			if f.after != nil {
				servers.Each(f.after)
			}
			for range 2 { // as it goes down, and when it is
				err := errorOf(r.TryAcquire(t.Context(), "k", ttl))
				requireOnly(t, err, redlock.ErrNoQuorum)
				for _, n := range testkit.As[*redlock.QuorumError](t, err).Failed {
					requireOnly(t, n)
				}
				for _, n := range r.Stats().Nodes {
					requireOnly(t, n.Err)
				}
			}
			if err := cluster.IsReady(r); err != nil {
				requireOnly(t, err, redlock.ErrNoQuorum)
			}
			ctx, cancel := context.WithCancel(t.Context())
			before := r.Stats().Acquire.NoQuorum
			given := testkit.Start(func() error { return errorOf(r.Acquire(ctx, "k", ttl)) })
			testkit.Await(t, "a whole attempt", func() bool { return r.Stats().Acquire.NoQuorum > before })
			cancel()
			requireOnly(t, testkit.Outcome(t, "Acquire", given), context.Canceled, redlock.ErrNoQuorum)
			require.NoError(t, r.Close())
			requireOnly(t, errorOf(r.Acquire(t.Context(), "k", ttl)), redlock.ErrClosed)
		})
	}
	cluster.Run(t, "others", func(t *testing.T) {
		r := cluster.New(t, 3)
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		requireOnly(t, errorOf(r.TryAcquire(t.Context(), "k", ttl)), redlock.ErrTaken)
		requireOnly(t, errorOf(r.TryAcquire(t.Context(), "", ttl)), redlock.ErrArgument)
		brief := func() context.Context { return testkit.Limited(t, 30*time.Millisecond) }
		requireOnly(t, errorOf(r.Acquire(brief(), "k", ttl)), context.DeadlineExceeded, redlock.ErrTaken)
		requireOnly(t, errorOf(r.AcquireAll(brief(), ttl, "free", "k")), context.DeadlineExceeded, redlock.ErrTaken)
		require.NoError(t, l.Release(t.Context()))
		requireOnly(t, l.Release(t.Context()), redlock.ErrNotHeld)
		short := cluster.MustAcquire(t, r.Client, "short", 100*time.Millisecond)
		testkit.Await(t, "expired", func() bool { return short.Remaining() == 0 })
		requireOnly(t, short.Extend(t.Context(), ttl), redlock.ErrExpired)
		_, err := redlock.New(redlock.Config{})
		requireOnly(t, err, redlock.ErrConfig)
	})
}

// TestErrorTexts: each has the event, with the figures needed by a person, and names a node once.
func TestErrorTexts(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		text := func(err error) string { return fmt.Sprint(err) }
		r := cluster.New(t, 3, cluster.NodeTimeout(50*time.Millisecond))
		l := cluster.MustAcquire(t, r.Client, "held", ttl)
		r.Servers[0].Hang()
		r.Servers[2].ErrorReply("SET", "OOM command not allowed", 0)
		_, err := r.TryAcquire(t.Context(), "k", ttl)
		require.Equal(t, "redlock: no quorum (2 of 3 nodes failed: "+r.Servers[0].Addr()+" no answer within 50ms (NodeTimeout), "+
			r.Servers[2].Addr()+" OOM command not allowed)", text(err))
		quorum := testkit.As[*redlock.QuorumError](t, err)
		require.Equal(t, []any{redlock.OpAcquire, 1, 0, 2}, []any{quorum.Kind, quorum.Granted, quorum.Denied, quorum.Failed[1].Node})
		ctx := testkit.Limited(t, 200*time.Millisecond)
		_, err = r.Acquire(ctx, "orders:\n42", ttl)
		require.Regexp(t, `^redlock: gave up on "orders:\\n42" after \d+ attempts? in \d+ms: no quorum \(2 of 3 nodes failed: .*\); context deadline exceeded$`, text(err))
		r.Servers[2].Hang()
		require.Contains(t, text(l.Release(t.Context())), "then another Release returns ErrNotHeld")

		mixed := cluster.New(t, 5, plainly)
		l = cluster.MustAcquire(t, mixed.Client, "k", ttl)
		cluster.Settle(t, mixed.Client)
		mixed.Servers[:2].Each(func(s *fakeredis.Server) { s.Del("k") })
		mixed.Servers[2].ErrorReply("EVALSHA", "OOM command not allowed", 0)
		require.Regexp(t, `^redlock: no quorum \(1 of 5 nodes failed: .* OOM command not allowed; 2 denied it\)$`, text(l.Extend(t.Context(), ttl)))
		require.NotRegexp(t, `\d\.\d\d`, fmt.Sprint(cluster.MustAcquire(t, cluster.New(t, 1).Client, "k", 5*time.Second+123456789)), "a rounded time")

		bounded := cluster.New(t, 1, func(c *redlock.Config) { c.MaxTTL = time.Hour })
		_, err = bounded.TryAcquire(t.Context(), "k", ttl)
		require.ErrorIs(t, err, conn.ErrQuarantined)
		require.Regexp(t, `up for \d+s, MaxTTL is 1h0m0s: no vote for 1h0m\d+s`, text(err))
		_, err = bounded.TryAcquire(t.Context(), "k", 2*time.Hour)
		require.Equal(t, "redlock: ttl is 2h0m0s, from 10ms to 1h0m0s (MaxTTL) are allowed", text(err))

		hole := cluster.New(t, 1, func(c *redlock.Config) { c.DialTimeout, c.Dialer = 30*time.Millisecond, blackHole })
		require.Contains(t, text(cluster.IsReady(hole)), "no answer within 30ms (DialTimeout)")
	})
}
