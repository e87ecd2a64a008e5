//go:build unix

package main

import (
	"context"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// sent records the signals to a tree.
type sent struct{ all []syscall.Signal }

func (s *sent) send(got syscall.Signal) {
	if len(s.all) == 0 || s.all[len(s.all)-1] != got {
		s.all = append(s.all, got)
	}
}

// aRun is a run with a TTL of ten seconds.
func aRun(t *testing.T) *runner {
	r, err := newRunner(&environment{err: io.Discard, environ: func() []string { return nil }}, []string{"-nodes", "a", "job", "--", "true"})
	require.NoError(t, err)
	return r
}

type discarded struct{ io.Writer }

func (discarded) Close() error { return nil }

// aJob is a job whose keeper holds the lock for ten seconds.
func aJob(t *testing.T) (*job, *sent) {
	s := &sent{}
	j := &job{runner: aRun(t), pipe: discarded{io.Discard}, tree: newTree()}
	j.send = s.send
	j.ask(0)
	j.hear(news{kind: newsHeld, number: j.number, left: j.ttl})
	require.Equal(t, holding, j.step)
	return j, s
}

// looks makes the job look as often as it wants to, and the keeper answer its questions, or be silent. It returns the
// time of the last look.
func (j *job) looks(from, to clock.Instant, answer func(now clock.Instant) news) clock.Instant {
	for now := from; now < to; {
		now = now.Add(j.look(now))
		if j.isOpen && answer != nil {
			n := answer(now)
			n.number = j.number
			j.hear(n)
		}
	}
	return to
}

// TestJobWakes: after a stop of any length the job asks the keeper, and its answer decides: it has kept the lock. An
// answer to an earlier question shows the time left since that question.
func TestJobWakes(t *testing.T) {
	held := func(clock.Instant) news { return news{kind: newsHeld, left: 8 * time.Second} }
	for _, stop := range []time.Duration{time.Second, 8 * time.Second, 9500 * time.Millisecond, 11 * time.Second, 24 * time.Hour} {
		j, s := aJob(t)
		now := j.looks(0, clock.Instant(20*time.Second), held)
		j.ask(now)
		waits := news{kind: newsHeld, number: j.number, left: 10 * time.Second}
		now = now.Add(stop)
		j.hear(waits)
		require.LessOrEqual(t, j.until.Sub(now), max(0, 10*time.Second-stop))
		j.look(now)
		j.look(now.Add(time.Millisecond))
		j.looks(now.Add(500*time.Millisecond), now.Add(20*time.Second), held)
		require.Empty(t, s.all, "after %v", stop)
		require.NoError(t, j.failed)
	}
}

// TestJobEnds: if the keeper is silent, the tree gets SIGTERM first, with time to clean up, and SIGKILL before the lock
// ends. After a long stop the keeper first has time to answer, and the program has -kill-after to clean up.
func TestJobEnds(t *testing.T) {
	j, s := aJob(t)
	at := map[syscall.Signal]clock.Instant{}
	j.send = func(got syscall.Signal) {
		if s.send(got); at[got] == 0 {
			at[got] = j.looked
		}
	}
	now := j.looks(0, clock.Instant(9900*time.Millisecond), nil)
	require.Equal(t, []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}, s.all)
	require.InDelta(t, (10*time.Second - j.killAfter*3/4).Seconds(), time.Duration(at[syscall.SIGTERM]).Seconds(), 0.2)
	require.ErrorContains(t, j.failed, "the second process stands still")

	j, s = aJob(t) // after it has waited for its lock for nearly its TTL
	j.looks(clock.Instant(9900*time.Millisecond), clock.Instant(10600*time.Millisecond), nil)
	require.Empty(t, s.all, "the program is being started")
	j, s = aJob(t)
	now = now.Add(time.Hour)
	j.looks(now, now.Add(2700*time.Millisecond), nil)
	require.Empty(t, s.all, "it has had no time to answer")
	j.looks(now.Add(time.Minute), now.Add(time.Minute+80*time.Millisecond), nil)
	require.Empty(t, s.all, "neither was awake in this minute")
	now = j.looks(now.Add(time.Minute), now.Add(time.Minute+j.killAfter), nil)
	require.Equal(t, []syscall.Signal{syscall.SIGTERM}, s.all)
	j.looks(now, now.Add(time.Second), nil)
	require.Equal(t, []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}, s.all)

	j, s = aJob(t) // the keeper ends it, and then stands still
	now = j.looks(0, clock.Instant(5*time.Second), func(clock.Instant) news { return news{kind: newsEnding, left: 100 * time.Millisecond} })
	require.Empty(t, s.all)
	j.looks(now, now.Add(3*time.Second), nil)
	require.Equal(t, []syscall.Signal{syscall.SIGKILL}, s.all, "the keeper has sent the other")
}

// TestKeeperAsks: a lock is given up after the nodes were asked, and not before. So an outage already over, or a stop
// of the keeper, ends no program. SIGTERM comes first, and SIGKILL before the end of the lock.
func TestKeeperAsks(t *testing.T) {
	require.Equal(t, 2500*time.Millisecond, aRun(t).killAfter)
	refuses := func(context.Context) error { return redlock.ErrNoQuorum }
	grants := func(context.Context) error { return nil }
	var hangs func(context.Context) error
	for _, c := range []struct {
		left   time.Duration // when the keeper looks first
		extend func(context.Context) error
		atMost time.Duration // of the lock left at SIGTERM; 0: there is none
	}{
		{4 * time.Second, grants, 0}, {2400 * time.Millisecond, grants, 0}, {100 * time.Millisecond, grants, 0},
		{4 * time.Second, refuses, 2500 * time.Millisecond}, {4 * time.Second, hangs, 2500 * time.Millisecond},
		{2 * time.Second, refuses, 2 * time.Second}, {2 * time.Second, hangs, 2 * time.Second},
	} {
		s := &sent{}
		k := newKeeper(newTree())
		k.runner, k.kept, k.send, k.extend = aRun(t), t.Context(), s.send, c.extend
		if c.extend == nil {
			k.extend = func(context.Context) error { <-t.Context().Done(); return redlock.ErrNoQuorum }
		}
		k.hold()
		now, until := clock.Instant(time.Hour), clock.Instant(time.Hour).Add(c.left)
		for end := now.Add(c.left); now < end && len(s.all) == 0; {
			pause := k.decide(now, until.Sub(now))
			if k.nodes.isOpen && c.extend != nil { // the answer is there before the next look
				testkit.Await(t, "an answer", func() bool { return len(k.answers) > 0 })
				if c.atMost == 0 {
					until = now.Add(k.ttl)
				}
			}
			if len(s.all) == 0 {
				now = now.Add(pause)
			}
		}
		if c.atMost == 0 {
			require.Empty(t, s.all, "with %v left", c.left)
			continue
		}
		left := until.Sub(now)
		require.LessOrEqual(t, left, c.atMost)
		require.GreaterOrEqual(t, left, c.atMost-k.patience()-2*lookPause, "it is not put off")
		require.ErrorIs(t, k.lost, redlock.ErrNoQuorum)
		for len(s.all) == 1 && now < until {
			now = now.Add(k.decide(now, until.Sub(now)))
		}
		require.Equal(t, []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}, s.all)
		require.InDelta(t, k.margin().Seconds(), until.Sub(now).Seconds(), 0.05)
	}
}
