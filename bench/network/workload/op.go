package workload

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
)

// opLock is a lock by Submit. Each operation ends by its own time, the rest of its caller's.
type opLock struct {
	*redlock.Op
	client *redlock.Client
	ended  chan struct{} // holds one
}

func submitted(c *redlock.Client, ctx context.Context, key string, ttl time.Duration) (held, error) {
	l := &opLock{&redlock.Op{Key: []byte(key), TTL: ttl}, c, make(chan struct{}, 1)}
	l.Done = func(*redlock.Op) { l.ended <- struct{}{} }
	if err := l.submit(ctx, redlock.OpAcquire); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *opLock) submit(ctx context.Context, kind redlock.OpKind) error {
	l.Kind, l.Within = kind, 0
	if at, ok := ctx.Deadline(); ok {
		l.Within = max(time.Millisecond, time.Until(at))
	}
	if err := l.client.Submit(l.Op); err != nil {
		return err
	}
	<-l.ended
	return l.Err()
}

// Release is sent once more where its time was over: nothing else ends the key but its TTL.
func (l *opLock) Release(ctx context.Context) error {
	err := l.submit(ctx, redlock.OpRelease)
	if errors.Is(err, context.DeadlineExceeded) {
		err = l.submit(context.Background(), redlock.OpRelease)
	}
	return err
}

func (l *opLock) Extend(ctx context.Context, ttl time.Duration) error {
	l.TTL = ttl
	return l.submit(ctx, redlock.OpExtend)
}
