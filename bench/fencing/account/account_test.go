package account_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/fencing/account"
	"github.com/redlock-go/redlock/bench/fencing/database"
)

// each runs a test on every database of this machine.
func each(t *testing.T, test func(t *testing.T, a account.Accounts)) {
	for _, name := range database.ForTests() {
		d, remove, err := database.New(name)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, remove()) })
		db, err := d.Open()
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		a := account.Accounts{DB: db}
		require.NoError(t, a.Create(t.Context(), 1, "new"))
		test(t, a)
	}
}

func TestTokens(t *testing.T) {
	const large = 1<<53 - 2
	each(t, func(t *testing.T, a account.Accounts) {
		ctx := t.Context()
		row := func(value string, fence uint64) {
			t.Helper()
			v, f, err := a.Read(ctx, 1)
			require.NoError(t, err)
			require.Equal(t, value, v)
			require.Equal(t, fence, f)
		}
		require.ErrorIs(t, a.Write(ctx, 1, "x", 0), account.ErrStale, "a lock without a token")
		require.NoError(t, a.Write(ctx, 1, "a", large-9))
		require.ErrorIs(t, a.Write(ctx, 1, "x", large-9), account.ErrStale, "once")
		require.ErrorIs(t, a.WriteAgain(ctx, 1, "x", large-10), account.ErrStale)
		row("a", large-9)
		require.NoError(t, a.WriteAgain(ctx, 1, "b", large-9))
		row("b", large-9)

		value, err := a.Enter(ctx, 1, large)
		require.NoError(t, err)
		require.Equal(t, "b", value)
		require.ErrorIs(t, a.WriteAgain(ctx, 1, "x", large-9), account.ErrStale, "a newer holder has entered")
		_, err = a.Enter(ctx, 1, large)
		require.ErrorIs(t, err, account.ErrStale)
		row("b", large)
		require.NoError(t, a.WriteAgain(ctx, 1, "c", large))
		require.NoError(t, a.WriteBlindly(ctx, 1, "stale", 5))
		row("stale", 5)

		err = a.Write(ctx, 2, "x", 9)
		require.Error(t, err)
		require.NotErrorIs(t, err, account.ErrStale, "there is no such row")
	})
}

// TestWritersAtOnce: whichever order the database chooses, the largest token stays, and
// each that was written was the largest until then.
func TestWritersAtOnce(t *testing.T) {
	each(t, func(t *testing.T, a account.Accounts) {
		const writers = 40
		var all sync.WaitGroup
		errs := make([]error, writers+1)
		for fence := 1; fence <= writers; fence++ {
			all.Go(func() {
				errs[fence] = a.Write(context.Background(), 1, fmt.Sprint(fence), uint64(fence))
			})
		}
		all.Wait()
		for _, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, account.ErrStale)
			}
		}
		require.NoError(t, errs[writers])
		value, fence, err := a.Read(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(writers), value)
		require.EqualValues(t, writers, fence)
	})
}
