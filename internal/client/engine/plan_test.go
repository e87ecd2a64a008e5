package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// modelNode is the model of a node: keys, the locks that hold them and for
// how long. It notes what each operation did.
type modelNode struct {
	holds map[int]int
	ttls  map[int]int64
	share map[int]map[int]int64 // of the holders of shared locks, their TTLs
	did   map[Kind][]string
}

func newModelNode() *modelNode {
	return &modelNode{map[int]int{}, map[int]int64{}, map[int]map[int]int64{}, map[Kind][]string{}}
}

func (s *modelNode) do(kind Kind, key, lock int, ttl int64) {
	done := false
	switch {
	case kind == Acquire && s.holds[key] == 0 && len(s.share[key]) == 0:
		s.holds[key], s.ttls[key], done = lock, ttl, true
	case kind == Extend && s.holds[key] == lock:
		s.ttls[key], done = ttl, true
	case kind == Release && s.holds[key] == lock && ttl > 0: // it stays
		s.ttls[key], done = min(s.ttls[key], ttl), true
	case kind == Release && s.holds[key] == lock:
		delete(s.holds, key)
		delete(s.ttls, key)
		done = true
	}
	s.did[kind] = append(s.did[kind], fmt.Sprintf("key %d lock %d ttl %d: %v", key, lock, ttl, done))
}

// doShared is do for a holder of a shared lock.
func (s *modelNode) doShared(kind Kind, key, lock int, ttl int64) {
	before, done := s.share[key][lock], false
	switch {
	case kind == Acquire && s.holds[key] == 0:
		if before == 0 {
			s.hold(key, lock, ttl)
		}
		done = true
	case kind == Extend && before > 0:
		s.hold(key, lock, max(before, ttl))
		done = true
	case kind == Release && before > 0:
		delete(s.share[key], lock)
		done = true
	}
	s.did[kind] = append(s.did[kind], fmt.Sprintf("key %d holder %d ttl %d: %v", key, lock, ttl, done))
}

func (s *modelNode) hold(key, lock int, ttl int64) {
	if s.share[key] == nil {
		s.share[key] = map[int]int64{}
	}
	s.share[key][lock] = ttl
}

// every is all forms of a release and an extend.
var every = []conn.Form{
	conn.Form(command.Scripts),
	conn.Form(command.DelIfEq),
	conn.Form(command.DelEx),
}

// encodeAll encodes ops, and returns the batch and its commands in the
// last of the forms.
func encodeAll(t *testing.T, e *Engine, ops []*Op, forms ...conn.Form) (*batch, []sentCommand) {
	b := e.ledger.batch()
	var l list
	for _, op := range ops {
		op.begin(0)
		l.push(op)
	}
	e.ledger.planner.plan(b, l, forms, false)
	var cmds []sentCommand
	at := 0
	for wire := &b.first.Batch; wire != nil; wire = wire.Next {
		if len(forms) > 0 {
			require.Equal(t, forms[at], wire.Form)
		}
		var err error
		cmds, err = parse(wire)
		require.NoError(t, err)
		at++
	}
	require.Equal(t, max(1, len(forms)), at)
	require.Equal(t, at, b.owed)
	return b, cmds
}

// TestEncodingChangesNothing: executing the commands of a batch in order comes
// to the same as executing its operations in order, each with the same result.
func TestEncodingChangesNothing(t *testing.T) {
	seed := rand.Uint64()
	merged := 0
	rng := rand.New(rand.NewPCG(seed, 1))
	e := New(Config{})
	e.nodes.n, e.nodes.quorum = 3, quorum.Majority(1<<3-1)
	for range 1000 {
		var ops []*Op
		plain, coded := newModelNode(), newModelNode()
		for key, some := range [][]int{{11, 12}, {}, {13}} { // they hold shared locks before
			for _, lock := range some {
				plain.hold(key, lock, 10)
				coded.hold(key, lock, 10)
			}
		}
		for i := range 1 + rng.IntN(30) {
			key, lock, ttl := rng.IntN(3), 1+rng.IntN(3), int64(10+rng.IntN(5))
			op := &Op{Kind: Acquire + Kind(rng.IntN(3)), Key: fmt.Appendf(nil, "key-%d", key), Token: tokenOf(lock),
				TTL: time.Duration(ttl) * time.Millisecond}
			ops = append(ops, op)
			if op.Kind == Release {
				ttl = rng.Int64N(3)
				op.Stay = time.Duration(ttl) * time.Millisecond
			}
			op.Shared = rng.IntN(3) > 0
			if op.Shared {
				op.Stay, lock = 0, 11+rng.IntN(3)
				switch op.Kind {
				case Acquire: // each has a token of its own
					lock = 20 + i
				case Release:
					ttl = 0
				}
				op.Token = tokenOf(lock)
				plain.doShared(op.Kind, key, lock, ttl)
				continue
			}
			plain.do(op.Kind, key, lock, ttl)
		}
		// The one that is looked at comes after others, or alone.
		forms := slices.Clone(every)
		rng.Shuffle(len(forms), func(i, j int) { forms[i], forms[j] = forms[j], forms[i] })
		b, cmds := encodeAll(t, e, ops, forms[:rng.IntN(len(forms)+1)]...)
		for _, cmd := range cmds {
			var seen []int
			for i, key := range cmd.keys {
				if cmd.shared {
					coded.doShared(cmd.kind, key, cmd.locks[i], cmd.ttls[i])
					if i == 0 || key != cmd.keys[i-1] {
						require.NotContains(t, seen, key, "the holders of a key stand together")
					}
					seen = append(seen, key)
					continue
				}
				coded.do(cmd.kind, key, cmd.locks[i], cmd.ttls[i])
			}
		}
		for kind := range plain.did { // across keys the order may change
			slices.Sort(plain.did[kind])
			slices.Sort(coded.did[kind])
		}
		require.Equal(t, plain, coded, "seed %d", seed)
		require.Equal(t, len(ops), len(b.rounds))
		merged += len(ops) - len(cmds)
		e.ledger.free.push(b)
	}
	require.Greater(t, merged, 3000, "hardly anything was merged")
}

// TestKeySet compares it with a map, over resets, growth, clusters and the end of its
// epochs: what was noted long ago does not count in an epoch of the same number. Two
// keys with one hash look like one key that occurs twice.
func TestKeySet(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	var s keySet[uint8]
	for i := range 200 {
		if i == 50 {
			s.epoch = 1<<32 - 50
		}
		n := 1 + rng.IntN(200)
		s.reset(n)
		require.NotZero(t, s.epoch, "entries that were never used would count")
		model := map[uint64]uint8{}
		for range n {
			hash, class := uint64(rng.IntN(2*n))<<uint(rng.IntN(2)*32), uint8(rng.IntN(classes))
			want, again := model[hash]
			was, got := s.at(hash)
			require.Equal(t, again, got, "seed %d", seed)
			require.Equal(t, want, *was, "seed %d", seed)
			*was = max(want, class)
			model[hash] = *was
		}
	}
	require.Less(t, s.epoch, uint32(1000), "the epochs did not wrap around")
}
