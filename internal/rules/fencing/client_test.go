package fencing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	. "github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/quorum"
)

// TestProposal: a call learns for its own next attempt alone, and also exceeds a block that nodes
// may have recorded. Otherwise two nodes of three refuse in turn.
func TestProposal(t *testing.T) {
	var p Proposal
	next := func(now uint64, k int) Block {
		b, ok := p.Next(now, k)
		require.True(t, ok)
		return b
	}
	require.Equal(t, Block{1000, 1001}, next(1000, 2))
	p.Learn(Answer{Code: Held, Token: 5000})
	p.Learn(Answer{Code: Stale, Token: 900})
	require.Equal(t, Block{5001, 5001}, next(1000, 1))
	require.Equal(t, Block{5002, 5002}, next(1000, 1), "never the same again")
	p.Exceed(Block{7000, 7063})
	require.Equal(t, Block{7064, 7064}, next(1000, 1))
	require.Equal(t, Block{9000, 9000}, next(9000, 1))
	p.Learn(Answer{Code: Stale, Token: MaxToken + 1})
	require.Equal(t, Block{9001, 9001}, next(1000, 1), "no node has that")
	_, ok := p.Next(1, 0)
	require.False(t, ok)
	require.Equal(t, Block{MaxToken, MaxToken}, next(MaxToken, 1))
	_, ok = p.Next(1, 1)
	require.False(t, ok, "none is left")
	_, ok = new(Proposal).Next(MaxToken, 2)
	require.False(t, ok)
	require.EqualValues(t, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro(), uint64(FirstTime))
}

// TestRecovery: requests follow each other, with growing pauses if nodes do not answer. A REJOIN is never sent again,
// and a changed nonce is found during the quarantine. The node is asked after each pause: another client may have
// brought it back.
func TestRecovery(t *testing.T) {
	const ms, at = time.Millisecond, clock.Instant(time.Millisecond)
	three := majority(3)
	three.Quarantine = 150 * ms
	tr := Recovery{Fleet: three, Node: 1}
	voting := quorum.Set(0b101)
	next := func(now clock.Instant, want Request, pause time.Duration) {
		t.Helper()
		r, p := tr.Next(now, "new", voting)
		require.Equal(t, want, r)
		require.Equal(t, pause, p)
	}
	notice := Request{Node: 1, Verb: NoticeVerb, Nonce: "new"}
	asked := func(now clock.Instant, nonce string) {
		t.Helper()
		next(now, notice, 0)
		tr.Answered(notice, withNonce(nonce), true, now)
	}
	next(0, notice, 0)
	tr.Answered(notice, Answer{}, false, 0)
	next(0, Request{}, MinPause)
	next(30*at, Request{}, 70*ms)
	asked(100*at, "a")
	next(100*at, Request{}, 150*ms) // not 200, the next pause
	tr.Doubt()
	asked(101*at, "a")
	next(101*at, Request{}, MinPause)
	tr.Doubt()
	asked(110*at, "b")
	next(110*at, Request{}, MinPause)
	asked(210*at, "b")
	next(210*at, Request{}, 50*ms)
	asked(260*at, "b")
	read := func(node int) Request { return Request{Node: node, Verb: ReadVerb, Nonce: "b"} }
	next(260*at, read(0), 0)
	tr.Answered(read(0), answered(7), true, 260*at)
	next(260*at, read(2), 0)
	tr.Answered(read(2), Answer{Code: Amnesia}, true, 260*at) // too early: it is read again
	voting = 0b1
	next(260*at, Request{}, 400*ms) // node 2 is known to have no vote
	asked(660*at, "b")
	next(660*at, Request{}, 800*ms)
	asked(1460*at, "b")
	next(1460*at, Request{}, MaxPause)
	asked(2460*at, "b")
	voting = 0b101
	next(2460*at, read(2), 0)
	tr.Answered(read(2), answered(6), true, 2460*at)
	rejoin := Request{Node: 1, Verb: RejoinVerb, Nonce: "b", Floor: 7, Fleet: "f"}
	next(2460*at, rejoin, 0)
	tr.Answered(rejoin, Answer{}, false, 2460*at)
	next(2460*at, Request{}, MaxPause)
	asked(3460*at, "b")
	next(3460*at, Request{}, 150*ms)
	tr.Doubt()
	next(3461*at, notice, 0)
	tr.Answered(notice, Answer{Code: Active}, true, 3461*at)
	next(3461*at, Request{}, MinPause) // and the node does not need it
	require.Equal(t, NoticeVerb, tr.Step(3461*at))
}

func TestAdvice(t *testing.T) {
	three := majority(3)
	for _, c := range []struct {
		answers []Code // zero: none
		want    Advice
	}{
		{[]Code{Held, Held, Stale}, Pause},
		{[]Code{Held, OK, Stale}, Again},
		{[]Code{Held, Stale, 0}, Pause},
		{[]Code{Held, Stale, Amnesia}, Pause},
		{[]Code{Stale, Stale, Stale}, Again},
		{[]Code{Stale, OK, 0}, Again},
		{[]Code{Stale, 0, 0}, Pause},
		{[]Code{OK, Held, 0}, Pause},
		{[]Code{OK, Amnesia, 0}, Pause},
		{[]Code{OK, Amnesia, Stale}, Again},
		{[]Code{OK, Amnesia, Amnesia}, Closed},
		{[]Code{Foreign, Held, Held}, Pause},
		{[]Code{Foreign, Foreign, OK}, Misfit},
		{[]Code{Invalid, Invalid, Invalid}, Misfit},
		{[]Code{0, 0, 0}, Pause},
	} {
		var r Answers
		for node, code := range c.answers {
			r.Add(node, Answer{Code: code})
		}
		require.Equal(t, c.want, r.Advise(&three, Memory{}), "%v", c.answers)
	}
}

// majority is a fleet of n nodes without a change.
func majority(n int) Fleet {
	return Fleet{Now: Configuration{Name: "f", Nodes: 1<<n - 1, Quorum: n/2 + 1}, Quarantine: 10}
}

// answered is the answer to READ of a node of this fleet.
func answered(token Token) Answer {
	return Answer{Code: OK, Token: token, Text: "active:f:run"}
}

var five = majority(5)

// withNonce is the answer to NOTICE of a node with a nonce.
func withNonce(nonce string) Answer {
	return Answer{Code: Amnesia, Text: Marker{Phase: Provisional, Me: Me{Run: "run"}, Nonce: nonce}.String()}
}

// recovering is a Recovery with answers given by a test.
type recovering struct{ Recovery }

func (r *recovering) noticed(a Answer, at clock.Instant) {
	r.Answered(Request{Node: r.Node, Verb: NoticeVerb}, a, true, at)
}

func (r *recovering) nonce(nonce string, at clock.Instant) { r.noticed(withNonce(nonce), at) }

func (r *recovering) learned(nonce string, node int, a Answer, at clock.Instant) {
	r.Answered(Request{Node: node, Verb: ReadVerb, Nonce: nonce}, a, true, at)
}

func (r *recovering) rejoined(a Answer, at clock.Instant) {
	r.Answered(Request{Node: r.Node, Verb: RejoinVerb}, a, true, at)
}

// TestSteps: the steps of the protocol, without its pauses.
func TestSteps(t *testing.T) {
	begin := func() recovering { return recovering{Recovery{Fleet: five, Node: 1}} }
	r := begin()
	require.Equal(t, NoticeVerb, r.Step(0))
	r.noticed(Answer{Code: Amnesia}, 4)
	require.Equal(t, NoticeVerb, r.Step(99), "no nonce, no timer")
	r.nonce("n", 5)
	require.Empty(t, r.Step(14))
	r.nonce("n", 12)
	require.Equal(t, clock.Instant(15), r.Due, "the first receipt counts")
	r.learned("n", 0, answered(99), 14)
	require.Equal(t, ReadVerb, r.Step(15))
	require.Zero(t, r.Floor, "a read before the end counts nothing")
	require.Equal(t, quorum.Set(0b11101), r.Unread())
	r.learned("n", 0, answered(8), 15)
	r.learned("n", 0, answered(7), 15)
	r.learned("n", 1, answered(9), 15)
	r.learned("m", 2, answered(9), 15)
	r.learned("n", 2, Answer{Code: Amnesia}, 15)
	r.learned("n", 3, answered(3), 15)
	require.Equal(t, ReadVerb, r.Step(20), "2 of 3 others")
	r.learned("n", 4, answered(5), 20)
	require.Equal(t, RejoinVerb, r.Step(20))
	require.Equal(t, Token(8), r.Floor)
	require.Equal(t, "n", r.Nonce)
	r.rejoined(Answer{Code: OK}, 21)
	require.Equal(t, NoticeVerb, r.Step(21), "a later loss begins anew")

	// Another nonce: everything begins again, the timer too.
	reads := func() recovering {
		r := begin()
		r.nonce("n", 5)
		r.learned("n", 0, answered(8), 15)
		return r
	}
	r = reads()
	r.nonce("m", 30)
	require.Empty(t, r.Step(39))
	require.Equal(t, ReadVerb, r.Step(40))
	require.Equal(t, quorum.Set(0b11101), r.Unread())
	require.Zero(t, r.Floor)
	r = reads()
	r.rejoined(withNonce("n"), 30)
	require.Equal(t, NoticeVerb, r.Step(39), "a REJOIN that was refused is not sent again")
	r = reads()
	r.noticed(Answer{Code: Active}, 30)
	require.Equal(t, NoticeVerb, r.Step(30), "another client was faster")

	require.EqualValues(t, 74, InitFloor(70, 4, 73, 72), "the holders behind the first are counted")
	require.EqualValues(t, 80, InitFloor(70, 4, 80, 72))
	require.EqualValues(t, 90, InitFloor(70, 4, 80, 90))
}

// replaced is a fleet of three whose third node is replaced by a fourth.
var replaced = Fleet{Now: Configuration{"old", 0b0111, 2}, Next: Configuration{"new", 0b1011, 2}}

// TestRejoinInAChange: the names in a node's marker follow from the markers read, and all named
// configurations must have been read.
func TestRejoinInAChange(t *testing.T) {
	for _, c := range []struct {
		why  string
		read map[int]string
		want string
	}{
		{"before the call", map[int]string{0: "old", 2: "old"}, "old"},
		{"one is too few", map[int]string{0: "old", 3: "old"}, ""},
		{"after it", map[int]string{0: "new", 3: "new"}, "new"},
		{"the old ones remain sealed", map[int]string{0: "new", 2: "old+new", 3: "new"}, "new"},
		{"in between", map[int]string{0: "old+new", 2: "old", 3: "old"}, "old+new"},
		{"those of the next are missing", map[int]string{0: "old+new", 2: "old+new"}, ""},
		{"sealed for the way back", map[int]string{0: "new+old", 2: "old", 3: "new"}, "old+new"},
	} {
		r := recovering{Recovery{Fleet: replaced, Node: 1}}
		r.nonce("n", 0)
		for node, fleet := range c.read {
			r.learned("n", node, Answer{Code: OK, Token: Token(node), Text: "active:" + fleet + ":run"}, 0)
		}
		require.Equal(t, c.want, r.Names(), c.why)
		require.Equal(t, c.want != "", r.Step(0) == RejoinVerb, c.why)
	}
	for names, seen := range map[string]Memory{"old": {Now: 1}, "old+new": {Now: 1, Both: 4}, "new": {Next: 1, Both: 4}} {
		require.Equal(t, names, replaced.At(seen.Stage()), "an operator's number leaves the change where it was")
	}
}

// TestChange: a quorum of the present nodes must have the same nonces in two looks, and a quorum of the next nodes must
// be sealed as well. Groups are looked at together, and have one floor.
func TestChange(t *testing.T) {
	looks := func(f Fleet, nonces ...string) Looks {
		l := BeginLook(f)
		for node, nonce := range nonces {
			if nonce != "" {
				l.Shown(node, "run", Answer{Code: OK, Token: Token(10 + node), Text: "active:old+new:run:" + nonce})
			}
		}
		return Looks{&l}
	}
	first := looks(replaced, "a", "b", "c")
	require.True(t, first.Are(false, nil))
	require.False(t, first.Are(true, nil), "the first look")
	second := looks(replaced, "a", "x", "y")
	require.True(t, second.Are(false, nil))
	require.False(t, second.Are(true, first), "two have forgotten")
	third := looks(replaced, "a", "", "y")
	require.False(t, third.Are(false, nil), "the next ones have no quorum")
	require.False(t, third.Are(true, second))
	third[0].Shown(3, "run", Answer{Code: Amnesia})
	require.False(t, third.Are(false, nil))
	third[0].Shown(3, "run", Answer{Code: OK, Token: 99, Text: "active:old+new:run:z"})
	require.True(t, third.Are(true, second))
	_, opens := third[0].Opens(2)
	require.False(t, opens, "it is not of the next")
	_, opens = third[0].Opens(1)
	require.False(t, opens, "it was not sealed")
	nonce, opens := third[0].Opens(3)
	require.True(t, opens)
	require.Equal(t, "z", nonce)

	one := Fleet{Now: Configuration{"old", 1, 1}, Next: Configuration{"new", 1, 1}}
	before, now := append(looks(one), second...), append(looks(one), third...)
	require.False(t, now.Are(false, nil), "the other group is not sealed")
	now[0] = looks(one, "a")[0]
	require.True(t, now.Are(false, nil))
	require.False(t, now.Are(true, before), "it was not looked at before")
	opened := BeginLook(one)
	opened.Shown(0, "run", Answer{Code: OK, Token: 100, Text: "active:new:run"})
	now[0] = &opened
	require.True(t, now.Are(true, before), "it was changed by an earlier call")
	_, opens = now[0].Opens(0)
	require.False(t, opens, "it is open")
	require.EqualValues(t, 100, now.Token(), "the largest of all groups")
}

// TestLookIsBoundToNonces: an act waits until a quorum has shown a nonce. For a client of two configurations, a nonce
// of a client of one counts nothing: its own notice replaces it.
func TestLookIsBoundToNonces(t *testing.T) {
	now, next := Configuration{"now", 0b111, 2}, Configuration{"next", 0b111, 2}
	for _, f := range []Fleet{{Now: now}, {Now: now, Next: next}} {
		l := BeginLook(f)
		shows := func(node int, nonce string) {
			l.Shown(node, "run", Answer{Code: OK, Text: Marker{Provisional, Me{Run: "run"}, nonce}.String()})
		}
		l.Shown(0, "run", Answer{Code: OK})
		l.Shown(1, "run", Answer{Code: OK})
		require.Equal(t, Waits, l.Recovers())
		for node := range 3 {
			shows(node, "now/n.0")
		}
		require.Equal(t, f.Next.Nodes == 0, l.Recovers() == Acts)
		for node := range 2 {
			shows(node, f.Name()+"/n.0")
		}
		require.Equal(t, Acts, l.Recovers())
		if f.Next.Nodes == 0 { // a node without one would need a quarantine more
			l.Patient = true
			require.Equal(t, Acts, l.Recovers())
			delete(l.Nonces, 2)
			require.Equal(t, Waits, l.Recovers())
		}
	}
}

// TestInitBesideTokens: a group gets no first vote while another has tokens, unless a change adds it.
func TestInitBesideTokens(t *testing.T) {
	had, blank := BeginLook(majority(1)), BeginLook(majority(1))
	had.Shown(0, "run", answered(7))
	blank.Shown(0, "run", Answer{Code: OK, Text: Marker{Provisional, Me{Run: "run"}, "f/n.0"}.String()})
	for added, want := range map[bool]Verdict{false: Elsewhere, true: Acts} {
		blank.Added = added
		all := Inits([]*Look{&had, &blank})
		require.Equal(t, []Verdict{Known, want}, all)
	}
}
