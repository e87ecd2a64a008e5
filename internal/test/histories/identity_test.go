package histories

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// TestOneHolder: a client gives a lock to one caller at a time, also where an operator takes it from its holder at
// any moment, and this one gives it back at any moment after that. Such a holder counts no more.
func TestOneHolder(t *testing.T) {
	first, n := from(10 * seeds())
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			w := virtual.New(t, seed, 3)
			defer w.Close()
			o := &oneHolder{stage: &stage{w, t.Context()}, random: newRandom(seed, 7)}
			o.c = o.Client(func(c *redlock.Config) {
				if o.IntN(2) == 0 { // without a hook, the lock of one key has a path of its own
					c.Hooks.Attempt = func(redlock.Attempt) {}
				}
			})
			o.run()
			if o.failure != "" {
				t.Errorf("REDLOCK_SEED=%d: %s", seed, o.failure)
			}
		})
	}
}

type oneHolder struct {
	*stage
	random
	c *redlock.Client

	mu      sync.Mutex
	grants  []string // in their order
	holder  string   // its grant
	deleted string   // the grant whose key an operator has deleted, or is about to
	failure string
	all     sync.WaitGroup
}

const disputed = "k"

// holds notes a holder with the lock of a grant, and returns what notes its end. A grant may be passed on, but not once
// a younger one is there. The holders of one that an operator has deleted do not count.
func (o *oneHolder) holds(grant string) (ends func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.Index(o.grants, grant); i < 0 {
		o.grants = append(o.grants, grant)
	} else if i < len(o.grants)-1 {
		o.failure = cmp.Or(o.failure, "passed on though there is a younger grant")
	}
	if o.holder != "" && o.holder != o.deleted {
		o.failure = cmp.Or(o.failure, "two holders")
	}
	o.holder = grant
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.holder == grant {
			o.holder = ""
		}
	}
}

// moment is as long as some steps of a waiter, or none.
func (o *oneHolder) moment() time.Duration { return o.N(3*time.Millisecond) - time.Millisecond }

// calls is how callers get the lock. They return its grant, and what gives it back.
func (o *oneHolder) calls() map[string]func() (string, func(), error) {
	of := func(acquire locking) func() (string, func(), error) {
		return func() (string, func(), error) {
			l, err := acquire(o.ctx)
			return grantOf(l), func() { _ = l.Release(o.ctx) }, err
		}
	}
	return map[string]func() (string, func(), error){
		"Acquire": of(func(ctx context.Context) (redlock.Lock, error) {
			return o.c.Acquire(ctx, disputed, longTTL-time.Second)
		}),
		"TryAcquire": of(func(ctx context.Context) (redlock.Lock, error) { return o.c.TryAcquire(ctx, disputed, longTTL/2) }),
		"AcquireAny": of(anyOf(o.c, disputed)),
		"AcquireAll": of(allOf(o.c, disputed, "l")),
		"Submit": func() (string, func(), error) {
			op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte(disputed), TTL: longTTL}
			err := cluster.Submit(o.T, o.c, op)
			return op.Token(), func() { op.Kind = redlock.OpRelease; _ = cluster.Submit(o.T, o.c, op) }, err
		},
	}
}

// comers has some callers come, each for a moment.
func (o *oneHolder) comers(names ...string) {
	for _, name := range names {
		before, long := o.moment(), o.moment()
		o.all.Go(func() {
			time.Sleep(before)
			grant, release, err := o.calls()[name]()
			if err != nil {
				return
			}
			ends := o.holds(grant)
			time.Sleep(long)
			ends()
			release()
		})
	}
}

func (o *oneHolder) some(n int) (names []string) {
	for range o.IntN(n + 1) {
		names = append(names, []string{"Acquire", "Acquire", "TryAcquire", "AcquireAny", "AcquireAll", "Submit"}[o.IntN(6)])
	}
	return names
}

// grantOf is the digest of a lock's token. To ask for the token itself would keep the lock from being passed on.
func grantOf(l redlock.Lock) string {
	_, digest, _ := strings.Cut(fmt.Sprint(l), "digest ")
	return digest
}

func (o *oneHolder) run() {
	if o.IntN(2) == 0 { // a line is known
		held := o.take(o.c, disputed, longTTL)
		w := o.wait(o.c, disputed, longTTL)
		o.release(held)
		o.release(o.granted(w))
	}
	giveBack, ends := o.first()
	o.comers(o.some(3)...)
	time.Sleep(o.moment())
	later := o.operate(ends)
	o.comers(o.some(3)...)
	time.Sleep(o.moment())
	o.all.Go(giveBack)
	time.Sleep(o.moment())
	later()
	o.all.Wait()
}

// first has the lock acquired by its first holder.
func (o *oneHolder) first() (giveBack, ends func()) {
	if o.IntN(2) == 0 {
		inside, leave := make(chan string), make(chan struct{})
		o.all.Go(func() {
			_ = o.c.Do(o.ctx, disputed, longTTL, func(ctx context.Context) error {
				state, err := o.c.Inspect(ctx, disputed)
				require.NoError(o.T, err)
				inside <- state.Digest
				<-leave
				return nil
			})
		})
		o.deleted = <-inside
		return func() { close(leave) }, o.holds(o.deleted)
	}
	l, err := o.c.Acquire(o.ctx, disputed, longTTL)
	require.NoError(o.T, err)
	o.deleted = grantOf(l)
	if o.IntN(2) == 0 {
		return l.ReleaseAsync, o.holds(o.deleted)
	}
	return func() { _ = l.Release(o.ctx) }, o.holds(o.deleted)
}

// operate takes the lock from its first holder, now or later.
func (o *oneHolder) operate(ends func()) (later func()) {
	switch o.IntN(4) {
	case 0:
		ends()
		o.Servers.Del(disputed)
	case 1:
		ends()
		o.Servers.Flush()
	default:
		state, err := o.c.Inspect(o.ctx, disputed)
		require.NoError(o.T, err)
		l, err := o.c.Attach(o.ctx, disputed, state.Token(), time.Now().Add(time.Hour))
		require.NoError(o.T, err)
		ends()
		if o.IntN(2) == 0 {
			return func() { _ = l.Release(o.ctx) }
		}
		require.NoError(o.T, l.Release(o.ctx))
	}
	return func() {}
}
