package waiters_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/waiters"
)

// outside is a waiters.Outside in which it is always the same moment.
type outside struct{}

func (outside) Around(*waiters.Contender) waiters.Surroundings {
	return waiters.Surroundings{Now: time.Hour, Usable: 7, Pause: time.Second, Ask: time.Second}
}
func (outside) Now() time.Duration { return time.Hour }

// TestLateComer: a caller that was refused before there was a line does not undo what the
// first of it knows: that a node tracks the key.
func TestLateComer(t *testing.T) {
	table := waiters.Table[int]{Names: []uint64{1, 2, 3}, Outside: outside{}}
	var first, late waiters.Waiter[int]
	require.True(t, table.Stand("k", &first, 7))
	enter := table.Turn(&first)
	require.Equal(t, waiters.Enter, enter.Step.Action)
	table.Entered(&first, enter.Step.Node, waiters.Entry{First: true, Lease: time.Minute})
	watch := table.Turn(&first)
	require.Equal(t, waiters.Watch, watch.Step.Action)
	table.Watched(&first, watch.Step.Node, time.Second)
	require.False(t, table.Turn(&first).Acts)

	require.False(t, table.Stand("k", &late, 7))
	wake, _ := table.Pushed(watch.Step.Node, []byte("k"), true)
	require.Same(t, &first, wake)
	require.Equal(t, waiters.Attempt, table.Turn(&first).Step.Action)
}
