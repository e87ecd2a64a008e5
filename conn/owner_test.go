package conn

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

func TestAfterClose(t *testing.T) {
	onBothPaths(t, 2, func(t *testing.T, r *testFleet) {
		before := r.send("before")
		r.do(r.Close)
		assert.Equal(t, 1, before.doneCalls)
		assert.ErrorIs(t, before.errOf(0), ErrClosed)
		assert.NotErrorIs(t, before.errOf(0), ErrNotSent)
		r.Drain()
		after, one := r.send("after"), r.sendTo(1, "after")
		assert.Equal(t, 1, after.doneCalls)
		assert.Equal(t, 1, one.doneCalls)
		for _, err := range []error{after.errOf(0), after.errOf(1), one.errOf(1)} {
			assert.ErrorIs(t, err, ErrClosed)
			assert.ErrorIs(t, err, ErrNotSent)
		}
		r.do(func() {
			r.Sweep(0)
			r.Sweep(1)
			r.Check()
			r.Arm(false)
			r.Close()
			for i := range r.Len() {
				assert.False(t, r.Up(i))
				assert.ErrorIs(t, r.Fault(i), ErrClosed)
			}
		})
		for range 3 {
			testkit.Within(t, testkit.Patience, "Wait", func() { assert.False(t, r.Wait()) })
		}
		r.Drain()
		r.AwaitFirst(nil, nil)
	})
}
