package quorum_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/quorum"
)

// Three nodes become five, two of which stay: a quorum is two of the old list and three of the
// new one. The nodes that stay count in both.
func ExampleJoint() {
	three := quorum.Majority(0b000111)
	five := quorum.Majority(0b111110)
	var tally quorum.Tally
	tally.Reset(quorum.Joint(three, five))
	fmt.Println(tally.Record(1, quorum.Granted))
	fmt.Println(tally.Record(2, quorum.Granted)) // two of three, two of five
	fmt.Println(tally.Record(0, quorum.Failed))
	fmt.Println(tally.Record(5, quorum.Granted))
	// Output:
	// pending
	// pending
	// pending
	// won
}

// A set of nodes that blocks one of the lists blocks a round of both.
func ExampleConfig_Blocks() {
	joint := quorum.Joint(quorum.Majority(0b0111), quorum.Majority(0b1110))
	fmt.Println(joint.IsQuorum(0b0011), joint.IsQuorum(0b0110))
	fmt.Println(joint.Blocks(0b1001), joint.Blocks(0b0011))
	// Output:
	// false true
	// false true
}

// TestJointIsTwoTallies holds every joint round of up to five nodes, with all votes that there
// can be, to two oracles, which know one list each. The next list may be empty.
func TestJointIsTwoTallies(t *testing.T) {
	const n = 5
	for now := quorum.Set(1); now < 1<<n; now++ {
		for next := quorum.Set(0); next < 1<<n; next++ {
			c := quorum.Joint(quorum.Majority(now), quorum.Majority(next))
			require.Equal(t, now|next, c.Nodes())
			for all := range 1 << (2 * n) {
				var tally quorum.Tally
				tally.Reset(c)
				verdict := tally.Verdict()
				for node := range n {
					o := quorum.Outcome(all >> (2 * node) & 3)
					before := verdict
					verdict = tally.Record(node, o)
					if before != quorum.Pending && verdict != before {
						t.Fatalf("lists %05b and %05b, votes %010b: from %v to %v", now, next, all, before, verdict)
					}
				}
				vote := func(node int) quorum.Outcome { return quorum.Outcome(all >> (2 * node) & 3) }
				if want := both(verdictOf(now, vote), verdictOf(next, vote)); verdict != want {
					t.Fatalf("lists %05b and %05b, votes %010b: %v, want %v", now, next, all, verdict, want)
				}
			}
		}
	}
}

func both(a, b quorum.Verdict) quorum.Verdict {
	switch {
	case a == quorum.Won && b == quorum.Won:
		return quorum.Won
	case a == quorum.Lost || b == quorum.Lost:
		return quorum.Lost
	}
	return quorum.Pending
}

// TestNeighboursExcludeEachOther: for all lists of four nodes, a quorum of a step and one of the
// step beside it share a node. Those of steps that have no list in common need not.
func TestNeighboursExcludeEachOther(t *testing.T) {
	const n = 4
	apart := 0
	for a := quorum.Set(1); a < 1<<n; a++ {
		for b := quorum.Set(1); b < 1<<n; b++ {
			from, to := quorum.Majority(a), quorum.Majority(b)
			joint := quorum.Joint(from, to)
			for x := range quorum.Set(1 << n) {
				y := ^x // what a quorum that shares no node may have
				if joint.IsQuorum(x) && (from.IsQuorum(y) || to.IsQuorum(y) || joint.IsQuorum(y)) {
					t.Fatalf("lists %04b and %04b: a quorum in %04b, and one beside it", a, b, x)
				}
				if from.IsQuorum(x) && to.IsQuorum(y) {
					apart++
				}
			}
		}
	}
	require.NotZero(t, apart)
}

// TestConfigsAreAsked: the zero Config has no quorum, three lists are all needed, and a tally of
// other nodes than the first ones ignores the others.
func TestConfigsAreAsked(t *testing.T) {
	var none quorum.Config
	require.False(t, none.IsQuorum(^quorum.Set(0)))
	require.True(t, none.Blocks(0))
	var tally quorum.Tally
	require.Zero(t, tally.Record(0, quorum.Granted), "without a Config")
	tally.Reset(&none)
	require.Zero(t, tally.Record(0, quorum.Granted))

	one, two, three := quorum.Majority(1), quorum.Majority(2), quorum.Majority(4)
	for _, c := range []*quorum.Config{
		quorum.Joint(quorum.Joint(one, two), three), quorum.Joint(one, quorum.Joint(two, three)),
	} {
		for set := range quorum.Set(8) {
			require.Equal(t, set == 7, c.IsQuorum(set), set)
			require.Equal(t, set != 0, c.Blocks(set), set)
		}
	}

	tally.Reset(quorum.Joint(quorum.Majority(1<<63|1<<62), quorum.Majority(1<<3)))
	require.Equal(t, quorum.Pending, tally.Record(0, quorum.Denied))
	require.Equal(t, quorum.Pending, tally.Record(63, quorum.Granted))
	require.Equal(t, quorum.Pending, tally.Record(62, quorum.Granted))
	require.Equal(t, quorum.Set(1<<3), tally.Nodes(0))
	require.Equal(t, quorum.Won, tally.Record(3, quorum.Granted))
	require.Equal(t, quorum.Set(1<<63|1<<62|1<<3), tally.Nodes(quorum.Granted))
}
