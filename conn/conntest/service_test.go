package conntest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn/conntest"
)

// reporter is a service that makes one report at a time, in all of its processes.
type reporter struct {
	locks *redlock.Client
	write func(ctx context.Context) error
}

var errBusy = errors.New("another process makes the report")

func (r *reporter) report(ctx context.Context) error {
	err := r.locks.TryDo(ctx, "report", 10*time.Second, r.write)
	if errors.Is(err, redlock.ErrTaken) {
		return errBusy
	}
	return err
}

// newReporter starts a process of the service.
func newReporter(t *testing.T, masters *conntest.Masters, write func(context.Context) error) *reporter {
	client, err := redlock.New(redlock.Config{Nodes: masters.Addrs(), NodeTimeout: 2 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return &reporter{client, write}
}

// TestOneReportAtATime: while one process writes, another one is refused, and the lock is free
// afterwards.
func TestOneReportAtATime(t *testing.T) {
	masters := conntest.Start(t, 3)
	second := newReporter(t, masters, func(context.Context) error { return errors.New("two reports at once") })
	first := newReporter(t, masters, func(ctx context.Context) error {
		require.Eventually(t, func() bool { return len(masters.Keys(0)) == 1 }, time.Minute, time.Millisecond, "two of three suffice, and this may be the third")
		require.Equal(t, errBusy, second.report(ctx))
		return nil
	})
	require.NoError(t, first.report(t.Context()))
	second.write = func(context.Context) error { return nil }
	require.Eventually(t, func() bool { return second.report(t.Context()) == nil }, time.Minute, time.Millisecond, "the release is on its way")
}

// TestNoReportWithoutQuorum: with one of three masters there is no lock, and with two there is.
func TestNoReportWithoutQuorum(t *testing.T) {
	masters := conntest.Start(t, 3)
	written := 0
	r := newReporter(t, masters, func(context.Context) error { written++; return nil })
	masters.Stop(0)
	require.NoError(t, r.report(t.Context()))
	masters.Hang(1)
	require.ErrorIs(t, r.report(t.Context()), redlock.ErrNoQuorum, "once NodeTimeout is over")
	require.Equal(t, 1, written)
	masters.Resume(1)
	masters.Resume(0)
	require.NoError(t, r.locks.Ready(t.Context()))
	require.NoError(t, r.report(t.Context()))
	require.Equal(t, 2, written)
}

// TestLostLockEndsTheReport: the context of the report ends when the lock was deleted by hand.
func TestLostLockEndsTheReport(t *testing.T) {
	masters := conntest.Start(t, 3)
	client, err := redlock.New(redlock.Config{Nodes: masters.Addrs(), NodeTimeout: 2 * time.Second})
	require.NoError(t, err)
	defer client.Close()
	err = client.Do(t.Context(), "report", 3*time.Second, func(ctx context.Context) error {
		for ctx.Err() == nil { // the lock is held once two masters have the key; the third may get it now
			masters.Delete(1, "report")
			masters.Delete(2, "report")
			time.Sleep(time.Millisecond)
		}
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, redlock.ErrNotHeld)
	masters.Restart(0)
	require.Empty(t, masters.Keys(0))
}
