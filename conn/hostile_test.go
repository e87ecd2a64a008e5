package conn

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/resp"
)

// hostile is a server by what it does in place of answering a demand.
type hostile struct {
	name  string
	does  steps
	taken int // replies that reach the owner; see some
	want  any // a resp.Reason, an error, a func(error) bool, or nil for any error
}

// some is for servers of which the client may take any number of replies.
const some = -1

// hostiles are all of them.
func hostiles() []hostile { return slices.Concat(lengthServers(), commonServers(), tlsServers) }

// against are those that a kind of connection meets: lengths are the same to the
// decoder wherever they come from.
func (w way) against() []hostile {
	if w.server != nil {
		return slices.Concat(commonServers(), tlsServers)
	}
	return slices.Concat(lengthServers(), commonServers())
}

func commonServers() []hostile {
	return slices.Concat(malformedServers(), misfitServers, floodServers, endingServers)
}

// maxGrowth is what one server may make a client allocate, its own handshake and
// the return of its better self included.
const maxGrowth = 1 << 20

// growth is that bound here. Servers encrypt in the same process, and the race
// detector empties the pool that they do it from.
func (w way) growth() uint64 {
	if w.server != nil && raceEnabled {
		return 4 * maxGrowth
	}
	return maxGrowth
}

// Whatever a server does, it ends its own connection by a typed error, costs
// little memory, hurts no other node, and is taken back when it behaves. One
// fleet goes through all of it.
func TestHostileServers(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		r := w.rig(t, 3)
		others := []sock{r.socket(0), r.socket(2)}
		var most uint64
		var dearest string
		for _, h := range w.against() {
			before := allocated()
			r.suffer(h)
			r.up()
			growth := allocated() - before
			require.Less(t, growth, w.growth(), h.name)
			if growth > most {
				most, dearest = growth, h.name
			}
			r.serves(h.name)
		}
		t.Logf("at most %d KiB, for %q", most>>10, dearest)
		assert.Equal(t, others, []sock{r.socket(0), r.socket(2)}, "nobody else was closed")
	})
}

// suffer sends a demand to three nodes, of which number 1 is hostile.
func (r *rig) suffer(h hostile) {
	t := r.t
	gone := r.socket(1)
	d := r.demand()
	r.expectDemand(d)
	bad := r.wires[1]
	performed := make(chan struct{})
	go func() {
		defer close(performed)
		bad.perform(h.does)
	}()
	for _, i := range []int{0, 2} {
		r.wires[i].send(ok + counts)
		r.until(h.name+": an honest answer", func() bool { return d.nodes[i].ended })
		require.NoError(t, d.nodes[i].err, h.name)
	}
	if h.want == ErrStalled { // but not before all was said and heard
		<-performed
		r.until(h.name+": what comes before", func() bool { return d.nodes[1].replies == h.taken })
	}
	var cause error
	r.until(h.name, func() bool {
		if h.want == ErrStalled { // silence, on a clock that stands still
			r.clock.Advance(DefaultStallTimeout / 4)
			r.Check()
		}
		if f := r.Fault(1); f != nil && cause == nil {
			cause = f
		}
		return d.settled > 0 && r.nodes[1].sock != gone
	})
	bad.ended(h.name)
	_ = bad.Close()
	<-performed
	r.wires[1] = nil
	d.check(t, h.name)
	got := d.nodes[1]
	if h.taken != some {
		require.Equal(t, h.taken, got.replies, h.name)
	}
	if got.replies < demands {
		requireCause(t, h, got.err)
		require.NotErrorIs(t, got.err, ErrNotSent, h.name)
	} else {
		require.NoError(t, got.err, h.name)
	}
	if cause != nil { // seen before it was dialled again
		requireCause(t, h, cause)
		require.ErrorIs(t, cause, ErrNotSent, h.name)
	}
}

// serves sends a demand to all nodes, who answer it well.
func (r *rig) serves(when string) {
	d := r.demand()
	r.expectDemand(d)
	for _, w := range r.wires {
		w.send(ok + counts)
	}
	r.until("for service after "+when, func() bool { return d.settled > 0 })
	d.check(r.t, when)
	for i := range r.wires {
		require.NoError(r.t, d.nodes[i].err, when)
	}
}

func (r *rig) expectDemand(d *demand) {
	for _, w := range r.wires {
		w.expect(string(d.Buf))
	}
}

// requireCause wants an error that code can tell, and that people can read
// without harm: one short line, no control characters, no secret.
func requireCause(t *testing.T, h hostile, err error) {
	t.Helper()
	var of *Error
	require.ErrorAs(t, err, &of, h.name)
	switch want := h.want.(type) {
	case nil:
	case resp.Reason:
		var protocol *resp.ProtocolError
		require.ErrorAs(t, err, &protocol, h.name)
		require.Equal(t, want, protocol.Reason, h.name)
	case error:
		require.ErrorIs(t, err, want, h.name)
	case func(error) bool:
		require.True(t, want(err), "%s: %v", h.name, err)
	default:
		require.Fail(t, "no such expectation", "%T", want)
	}
	requireHarmless(t, h.name, err)
}

func requireHarmless(t *testing.T, who string, err error) {
	t.Helper()
	require.Less(t, len(err.Error()), 400, who)
	require.NotContains(t, err.Error(), marked, who)
	bad := strings.IndexFunc(err.Error(), func(r rune) bool { return r < ' ' || r > '~' })
	require.Negative(t, bad, "%s: %q", who, err)
}

// allocated is how many bytes this process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Every server is another one, and there are enough of them.
func TestHostileServersAreMany(t *testing.T) {
	names := make(map[string]bool)
	for _, h := range hostiles() {
		assert.False(t, names[h.name], "twice: %q", h.name)
		names[h.name] = true
	}
	for _, name := range []string{
		"length $-2\r\n", "length $9223372036854775807\r\n", "length $2147483647\r\n", "length *2147483647\r\n",
		"length *-5\r\n", "arrays in arrays, twenty million", "malformed :9223372036854775808",
	} {
		found := slices.ContainsFunc(hostiles(), func(h hostile) bool { return strings.HasPrefix(h.name, name) })
		assert.True(t, found, "none by the name %q", name)
	}
	t.Logf("%d hostile servers, %d rude receptions, %d refusals", len(names), len(receptions()), len(refusals))
	assert.GreaterOrEqual(t, len(names), 150)
}
