package fencing

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const hour = uint64(time.Hour / time.Microsecond)

// TestSecondAttempt: one client at a time, with clocks that are wrong by an hour both
// ways, takes keys from others. The second attempt succeeds at the latest, for a client
// that is ahead and meets a node that knows a larger token too; tokens grow.
func TestSecondAttempt(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	fleet := Fleet{Nodes: 5, Quorum: 3}
	nodes := make([]Node, fleet.Nodes)
	for i := range nodes {
		nodes[i] = voting(0)
	}
	clocks := make([]Clock, 6)
	last, again := map[string]uint64{}, 0
	now := 400_000 * hour
	for call := range 5_000 {
		now += 1 + random.Uint64N(1_000_000)
		who := random.IntN(len(clocks))
		own := now - hour + hour*uint64(who)/2 // up to an hour and a half ahead
		name := fmt.Sprint("key", random.IntN(9))
		if call%100 == 99 {
			nodes[random.IntN(len(nodes))].Collect(self, now-hour)
		}
		var p Proposal
		for attempt := 1; ; attempt++ {
			require.LessOrEqual(t, attempt, 2)
			b, ok := p.Next(&clocks[who], own, 1+random.IntN(3))
			require.True(t, ok)
			var r Refusals
			votes := 0
			for _, i := range random.Perm(fleet.Nodes)[:fleet.Quorum+random.IntN(3)] {
				skew := uint64(i) * 1000
				a := nodes[i].Acquire(self, Acquire{Name: name, Block: b, Now: now + skew, MaxAhead: hour / 4})
				r.Add(i, a)
				p.Learn(a)
				votes += bitOf(a.Code == OK)
			}
			if votes >= fleet.Quorum {
				require.Greater(t, b.First, last[name])
				last[name] = b.Last
				break
			}
			require.Equal(t, Again, r.Advise(fleet))
			again++
		}
	}
	require.Less(t, again, 1500, "the clocks are corrected")
}

// TestAhead: tokens far ahead, of a node whose clock was wrong, do not shut a key for a
// quorum that does not have them.
func TestAhead(t *testing.T) {
	var c Clock
	p := Proposal{}
	first, _ := p.Next(&c, 1000, 2)
	require.Equal(t, Block{1000, 1001}, first)
	p.Learn(Answer{Code: Held, Token: 5_000_000})
	p.Learn(Answer{Code: Held, Token: 900})
	second, _ := p.Next(&c, 1000, 1)
	require.Equal(t, Block{5_000_001, 5_000_001}, second)
	p.Learn(Answer{Code: Ahead, Token: 1900})
	p.Learn(Answer{Code: Ahead, Token: 2000})
	p.Learn(Answer{Code: Ahead, Token: 1800})
	third, _ := p.Next(&c, 1000, 1)
	require.Equal(t, Block{2001, 2001}, third)
	require.Equal(t, uint64(2101), c.Now(1100), "the clock has learned")
	fourth, _ := p.Next(&c, 1000, 1)
	require.Equal(t, Block{2002, 2002}, fourth, "never the same again")
}

// TestOwnBlock: an attempt exceeds also what nodes have recorded of the one before, which
// they do not tell. Otherwise two nodes of three refuse in turn.
func TestOwnBlock(t *testing.T) {
	nodes := []Node{voting(0), voting(1005)}
	var c Clock
	var p Proposal
	for attempt, want := range []int{1, 2} {
		b, ok := p.Next(&c, 1000, 64)
		require.True(t, ok)
		votes := 0
		for i := range nodes {
			a := nodes[i].Acquire(self, Acquire{Name: "k", Block: b, Now: 1000, MaxAhead: hour})
			p.Learn(a)
			votes += bitOf(a.Code == OK)
		}
		require.Equal(t, want, votes, attempt)
	}
}

// TestTreatment: requests follow each other, with pauses where nodes do not answer; a REJOIN
// is never sent again, and a nonce that has changed is found during the quarantine.
func TestTreatment(t *testing.T) {
	tr := Treatment{Rejoin: BeginRejoin(Fleet{Nodes: 3, Quorum: 2, Quarantine: 10}, 1)}
	next := func(now time.Duration, want Request, pause time.Duration) {
		t.Helper()
		r, p := tr.Next(now, "new")
		require.Equal(t, want, r)
		require.Equal(t, pause, p)
	}
	notice := Request{Node: 1, Verb: NoticeVerb, Nonce: "new"}
	noticed := func(now time.Duration, nonce string) {
		t.Helper()
		next(now, notice, 0)
		tr.Answered(notice, Answer{Code: Amnesia, Text: nonce}, true, now)
	}
	next(0, notice, 0)
	tr.Answered(notice, Answer{}, false, 0)
	next(0, Request{}, RetryRejoin)
	noticed(1, "a")
	next(1, Request{}, 10)
	tr.Doubt()
	noticed(2, "a")
	next(3, Request{}, 8)
	tr.Doubt()
	noticed(5, "b")
	next(11, Request{}, 4)
	read := func(node int) Request { return Request{Node: node, Verb: ReadVerb, Nonce: "b"} }
	next(15, read(0), 0)
	tr.Answered(read(0), Answer{Code: OK, Token: 7}, true, 15)
	next(15, read(2), 0)
	tr.Answered(read(2), Answer{Code: Amnesia}, true, 15)
	next(15, Request{}, RetryRejoin)
	next(16, read(2), 0)
	tr.Answered(read(2), Answer{Code: OK, Token: 6}, true, 16)
	rejoin := Request{Node: 1, Verb: RejoinVerb, Nonce: "b", Floor: 7}
	next(16, rejoin, 0)
	tr.Answered(rejoin, Answer{}, false, 16)
	next(16, Request{}, RetryRejoin)
	noticed(17, "b")
	next(17, Request{}, 10)
	tr.Doubt()
	next(18, notice, 0)
	tr.Answered(notice, Answer{Code: Active}, true, 18)
	require.True(t, tr.Finished())
	next(18, Request{}, 0)
}

func TestBounds(t *testing.T) {
	var c Clock
	p := Proposal{above: MaxToken}
	_, ok := p.Next(&c, 1, 1)
	require.False(t, ok)
	p, c = Proposal{}, Clock{}
	p.Learn(Answer{Code: Stale, Token: MaxToken + 1})
	b, ok := p.Next(&c, 1<<63, 1)
	require.True(t, ok)
	require.Equal(t, Block{MaxToken, MaxToken}, b, "a clock of the year 2255 and later")
	p, c = Proposal{}, Clock{}
	_, ok = p.Next(&c, MaxToken, 2)
	require.False(t, ok)
	_, ok = p.Next(&c, 1, 0)
	require.False(t, ok)

	b = Block{7, 8}
	require.Equal(t, 2, b.Left())
	one, ok1 := b.Next()
	two, ok2 := b.Next()
	_, ok3 := b.Next()
	require.Equal(t, []any{uint64(7), true, uint64(8), true, false}, []any{one, ok1, two, ok2, ok3})
	require.Zero(t, b.Left())
	b = Block{}
	_, ok = b.Next()
	require.False(t, ok || b.Left() != 0)
}

func TestAdvice(t *testing.T) {
	for _, c := range []struct {
		answers []Code // zero: none
		want    Advice
	}{
		{[]Code{Held, Held, Stale}, Taken},
		{[]Code{Held, OK, Stale}, Again},
		{[]Code{Held, Stale, 0}, Again},
		{[]Code{Ahead, Ahead, Ahead}, Again},
		{[]Code{Stale, 0, 0}, Unheard},
		{[]Code{OK, Held, 0}, Taken},
		{[]Code{OK, Amnesia, 0}, Missed},
		{[]Code{OK, Amnesia, Stale}, Again},
		{[]Code{OK, Amnesia, Amnesia}, Closed},
		{[]Code{Foreign, Held, Held}, Taken},
		{[]Code{Foreign, Foreign, OK}, Misfit},
		{[]Code{Invalid, Invalid, Invalid}, Misfit},
		{[]Code{0, 0, 0}, Unheard},
	} {
		var r Refusals
		for node, code := range c.answers {
			r.Add(node, Answer{Code: code})
		}
		require.Equal(t, c.want, r.Advise(Fleet{Nodes: 3, Quorum: 2}), "%v", c.answers)
	}
	r := Refusals{}
	r.Add(1, Answer{Code: Amnesia})
	require.Equal(t, uint64(2), r.Forgotten())
	require.Equal(t, []string{"none", "STALE", "INVALID", "unknown"}, []string{Code(0).String(), Stale.String(), Invalid.String(), Code(200).String()})
}

var five = Fleet{Nodes: 5, Quorum: 3, Quarantine: 10}

func TestRejoin(t *testing.T) {
	r := BeginRejoin(five, 1)
	require.Equal(t, SendNotice, r.Next(0))
	r.Noticed(Answer{Code: Amnesia}, 4)
	require.Equal(t, SendNotice, r.Next(99), "no nonce, no timer")
	r.Noticed(Answer{Code: Amnesia, Text: "n"}, 5)
	require.Equal(t, WaitUntil, r.Next(14))
	r.Noticed(Answer{Code: Amnesia, Text: "n"}, 12)
	require.Equal(t, time.Duration(15), r.Due(), "the first receipt counts")
	r.Learned("n", 0, Answer{Code: OK, Token: 99})
	require.Equal(t, SendReads, r.Next(15))
	require.Zero(t, r.Floor(), "a read before the end counts nothing")
	require.Equal(t, uint64(0b11101), r.Unread())
	r.Learned("n", 0, Answer{Code: OK, Token: 8})
	r.Learned("n", 0, Answer{Code: OK, Token: 7})
	r.Learned("n", 1, Answer{Code: OK, Token: 9})
	r.Learned("m", 2, Answer{Code: OK, Token: 9})
	r.Learned("n", 2, Answer{Code: Amnesia})
	r.Learned("n", 3, Answer{Code: OK, Token: 3})
	require.Equal(t, SendReads, r.Next(20), "2 of 3 others")
	r.Learned("n", 4, Answer{Code: OK, Token: 5})
	require.Equal(t, SendRejoin, r.Next(20))
	require.Equal(t, uint64(8), r.Floor())
	require.Equal(t, "n", r.Nonce())
	r.Rejoined(Answer{Code: OK}, 21)
	require.Equal(t, Finished, r.Next(21))

	// Another nonce: everything begins again, the timer too.
	reads := func() Rejoin {
		r := BeginRejoin(five, 1)
		r.Noticed(Answer{Code: Amnesia, Text: "n"}, 5)
		r.Next(15)
		r.Learned("n", 0, Answer{Code: OK, Token: 8})
		return r
	}
	r = reads()
	r.Noticed(Answer{Code: Amnesia, Text: "m"}, 30)
	require.Equal(t, WaitUntil, r.Next(39))
	require.Equal(t, SendReads, r.Next(40))
	require.Equal(t, uint64(0b11101), r.Unread())
	require.Zero(t, r.Floor())
	r = reads()
	r.Rejoined(Answer{Code: Amnesia, Text: "n"}, 30)
	require.Equal(t, WaitUntil, r.Next(39), "a REJOIN that was refused is not sent again")
	r = reads()
	r.Noticed(Answer{Code: Active}, 30)
	require.Equal(t, Finished, r.Next(30), "another client was faster")
	r = reads()
	r.Drop()
	require.Equal(t, BeginRejoin(five, 1), r)

	// An operator's floor takes the place of the reads, not of the quarantine.
	r = BeginInit(five, 1, 70)
	r.Noticed(Answer{Code: Amnesia, Text: "n"}, 5)
	require.Equal(t, WaitUntil, r.Next(14))
	require.Equal(t, SendRejoin, r.Next(15))
	r.Rejoined(Answer{Code: Amnesia, Text: "m"}, 16)
	require.Equal(t, SendRejoin, r.Next(26))
	require.Equal(t, uint64(70), r.Floor())
}

func TestAllocatesNothing(t *testing.T) {
	var c Clock
	sum := uint64(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		var p Proposal
		var r Refusals
		for node := range 5 {
			b, _ := p.Next(&c, 1000, 4)
			first, _ := b.Next()
			a := Answer{Code: Stale, Token: first}
			p.Learn(a)
			r.Add(node, a)
		}
		sum += uint64(r.Advise(five)) + p.above
	}))
	require.NotZero(t, sum)
}
