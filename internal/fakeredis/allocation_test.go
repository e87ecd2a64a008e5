//go:build !race

package fakeredis

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Not even locks whose keys were never seen before cost an allocation.
func TestLocksAllocateNothing(t *testing.T) {
	s := StartN(t, 1)[0]
	s.LoadScripts()
	nc := dial(t, "tcp", s.Addr()).nc
	const marker = "round-00000"
	commands, want := lockRound(marker)
	replies := make([]byte, len(want))
	rounds := 0
	round := func() {
		rounds++
		fresh := fmt.Appendf(nil, "round-%05d", rounds)
		for rest := commands; ; {
			at := bytes.Index(rest, []byte("round-"))
			if at < 0 {
				break
			}
			rest = rest[at+copy(rest[at:], fresh):]
		}
	}
	for range 10 { // buffers grow
		round()
		require.NoError(t, exchange(nc, commands, replies, want))
	}
	round() // the only allocations are its own
	own := testing.AllocsPerRun(100, round)
	got := testing.AllocsPerRun(100, func() {
		round()
		if err := exchange(nc, commands, replies, want); err != nil {
			t.Fatal(err)
		}
	})
	assert.Equal(t, own, got)
	require.Zero(t, s.Len())
}
