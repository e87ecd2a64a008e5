package recipes

import (
	"context"
	"iter"
	"time"

	"github.com/redlock-go/redlock"
)

const (
	// termTTL is how long the others wait at most for a leader that has died.
	termTTL = 10 * time.Second
	// observePace is how often Observe looks: the nodes send observers nothing.
	observePace = time.Second
)

// Election has one leader at a time among the candidates that campaign for the same key. A leader shows a value, such
// as its address, to all that ask. An Election has no state. Candidates and observers of one process may share it.
type Election struct {
	Client *redlock.Client
	Key    string
}

// Term is the time of one leader. Its context ends with the leadership. The cause is redlock.ErrStopped after Resign,
// and else why the leadership was lost. redlock.FenceFrom finds the fencing token in it.
type Term struct {
	context.Context
	lock redlock.Lock
}

// Campaign waits until the candidate leads. ctx bounds the campaign, not the term. Candidates wait in line. When a
// leader dies or does not reach the nodes any more, the next one leads after ten seconds at most.
//
// The value has at most 128 bytes of printable ASCII without spaces, else the error is ErrArgument. In place of an
// empty one Config.Name is shown. The value is part of the lock, so it stays for the term: a leader with another value
// resigns and campaigns again.
func (e Election) Campaign(ctx context.Context, value string) (*Term, error) {
	lock, err := e.Client.With(redlock.Options{Name: value}).Acquire(ctx, e.Key, termTTL)
	if err != nil {
		return nil, err
	}
	term, _ := lock.KeepAlive(context.WithoutCancel(ctx))
	return &Term{term, lock}, nil
}

// Contested returns a channel that is closed once another candidate campaigns, also one that campaigns already. A
// leader that has led for long enough may then resign. The end of the term does not close it: wait for Done beside it.
func (t *Term) Contested() <-chan struct{} { return t.lock.Wanted() }

// Resign ends the term, and the next candidate leads. It returns ErrNotHeld if the leadership was lost before. A
// leader resigns before it shuts its client down: else the others wait for ten seconds.
func (t *Term) Resign() error { return t.lock.Release(context.Background()) }

// Leader returns the value of the leader, and whether there is one. The error is ErrNoQuorum if too few nodes answered
// to know. A leader may have lost the leadership by the time its value is read.
func (e Election) Leader(ctx context.Context) (value string, ok bool, err error) {
	seen, err := e.Client.Inspect(ctx, e.Key)
	switch {
	case err != nil:
		return "", false, err
	case seen.Status == redlock.KeyUnknown:
		return "", false, redlock.ErrNoQuorum
	case seen.Status != redlock.KeyHeld:
		return "", false, nil
	}
	return seen.Holder, true, nil
}

// Observe yields the value of the leader, and then that of each new one. It ends with ctx and with the client. It
// looks once a second, so it misses a leader of less than that. It yields nothing while there is no leader, or while
// too few nodes answer to know. Two leaders of one process with the same value may count as one.
func (e Election) Observe(ctx context.Context) iter.Seq[string] {
	return func(yield func(value string) bool) {
		for last := ""; ; {
			seen, err := e.Client.Inspect(ctx, e.Key)
			if err != nil {
				return
			}
			if seen.Status == redlock.KeyHeld && seen.Digest != last {
				last = seen.Digest
				if !yield(seen.Holder) {
					return
				}
			}
			select {
			case <-time.After(observePace):
			case <-ctx.Done():
				return
			}
		}
	}
}
