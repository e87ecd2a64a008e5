package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/quorum"
)

// TestSummaryOfTwoLists: while nodes change, the value on a quorum of both lists is the holder's, also if more nodes have
// another.
func TestSummaryOfTwoLists(t *testing.T) {
	both := quorum.Joint(quorum.Majority(0b0011111), quorum.Majority(0b1111100))
	var seen []Sight
	for _, value := range []string{"left", "left", "held", "held", "held", "left", "left"} {
		seen = append(seen, Sight{There: true, Value: value, TTL: time.Minute})
	}
	s := summarize(seen, both)
	require.Equal(t, heldBy, s.Status)
	require.Equal(t, "held", s.Value.Show())
}
