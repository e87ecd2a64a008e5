package checker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/redlock-go/redlock/bench/network/history"
	"github.com/redlock-go/redlock/bench/network/nemesis"
)

// at is a time of a history, in milliseconds from its start.
func at(ms int) history.Time {
	return history.Time(time.Hour) + history.Time(ms)*history.Time(time.Millisecond)
}

const forMs = time.Millisecond

// healthy is a history in which nothing is wrong: 10 s of faults, and 5 s behind them.
func healthy() *history.History {
	h := &history.History{Setup: history.Setup{Library: history.Ours, Clients: 2, Start: at(0), Heal: at(10_000), Stop: at(15_000)}}
	for i := range 150 {
		for client := 1; client <= 2; client++ {
			c := lock(client, "probe", i*100, i*100+2, i*100+3, 1000)
			c.Keys, c.Got = []string{"probe-x"}, nil
			h.Calls = append(h.Calls, c)
		}
	}
	h.Ends = []*history.End{{Client: 1, Shutdown: history.OK, Before: 5, After: 5}, {Client: 2, Shutdown: history.OK, Before: 5, After: 5}}
	return h
}

// lock is a call that was granted, held from its answer, and released at a time.
func lock(client int, worker string, asked, answered, released, ttl int) *history.Call {
	return &history.Call{
		Client: client, Worker: string(rune('0'+client)) + "/" + worker, API: "Acquire", Library: history.Ours, Keys: []string{"k"}, Got: []string{"k"},
		TTL: time.Duration(ttl) * forMs, Asked: at(asked), Deadline: at(asked + 2000), Answered: at(answered), Result: history.OK,
		From: at(answered), Until: at(released), Released: at(released), Gone: at(released + 1), Release: history.OK, Left: time.Second,
	}
}

// refused is a call that was not granted.
func refused(client int, worker, key string, asked, answered int, result string) *history.Call {
	return &history.Call{
		Client: client, Worker: string(rune('0'+client)) + "/" + worker, API: "Acquire", Library: history.Ours, Keys: []string{key},
		TTL: time.Second, Asked: at(asked), Deadline: at(asked + 2000), Answered: at(answered), Result: result,
	}
}

func fault(kind, scope string, from, to int, hit ...int) *history.Fault {
	return &history.Fault{Kind: kind, Scope: scope, From: at(from), To: at(to), Hit: hit, Alone: true}
}

const gaveUpTaken = history.GaveUp + history.Taken

// TestRules: what the checker finds in a history, and what it does not.
func TestRules(t *testing.T) {
	type change = func(h *history.History)
	calls := func(c ...*history.Call) change { return func(h *history.History) { h.Calls = append(h.Calls, c...) } }
	with := func(c *history.Call, f func(c *history.Call)) *history.Call { f(c); return c }
	fenced := func(c *history.Call, token uint64, writes ...history.Write) *history.Call {
		c.Fence, c.Writes = token, writes
		return c
	}
	digest := func(c *history.Call, d string) *history.Call {
		c.Digest, c.Keys, c.Got = d, []string{"broken0"}, []string{"broken0"}
		return c
	}
	breaks := func(h *history.History) {
		h.Breaks = []*history.Break{{Client: 1, Key: "broken0", Digest: "d", Called: at(1100), Answered: at(1110)}}
	}
	reads := func(c *history.Call) *history.Call { c.Shared = true; return c }
	on := func(key string, all ...*history.Call) []*history.Call {
		for _, c := range all {
			c.Keys, c.Got = []string{key}, []string{key}
		}
		return all
	}
	of := func(f *history.Fault, masters ...int) *history.Fault { f.Masters = masters; return f }
	faults := func(f ...*history.Fault) change { return func(h *history.History) { h.Faults = f } }
	kept := with(lock(1, "a", 1000, 1010, 2900, 1000), func(c *history.Call) { c.API, c.Over = "KeepAlive", history.NoQuorum })
	many := func(changes ...change) change {
		return func(h *history.History) {
			for _, c := range changes {
				c(h)
			}
		}
	}
	for name, x := range map[string]struct {
		change change
		rules  []string
	}{
		"nothing":           {func(*history.History) {}, nil},
		"one after another": {calls(lock(1, "a", 1000, 1010, 1100, 1000), lock(2, "b", 1050, 1100, 1200, 1000)), nil},
		"two at once":       {calls(lock(1, "a", 1000, 1010, 1100, 1000), lock(2, "b", 1050, 1099, 1200, 1000)), []string{Overlap}},
		"a short one within a long one, and one behind it": {
			calls(lock(1, "a", 1000, 1010, 1900, 1000), lock(2, "b", 1000, 1100, 1200, 1000), lock(2, "c", 1000, 1300, 1400, 1000)), []string{Overlap, Overlap}},
		"never seen to be valid": {calls(lock(1, "a", 1000, 1010, 1100, 1000), with(lock(2, "b", 1050, 1060, 1200, 1000), func(c *history.Call) { c.From = 0 })), nil},
		"one key of a set": {calls(lock(1, "a", 1000, 1010, 1100, 1000), with(lock(2, "b", 1050, 1060, 1200, 1000), func(c *history.Call) {
			c.Keys = []string{"j", "k"}
			c.Got = c.Keys
		})), []string{Overlap}},

		"two readers":                      {calls(reads(lock(1, "a", 1000, 1010, 1200, 1000)), reads(lock(2, "b", 1050, 1060, 1300, 1000))), nil},
		"a reader beside a writer":         {calls(lock(1, "a", 1000, 1010, 1200, 1000), reads(lock(2, "b", 1050, 1060, 1300, 1000))), []string{Overlap}},
		"a reader behind a waiting writer": {calls(refused(1, "a", "k", 900, 1500, gaveUpTaken), reads(lock(1, "c", 800, 810, 1400, 1000)), reads(refused(2, "b", "k", 1000, 1100, gaveUpTaken))), nil},
		"a reader beside readers alone":    {calls(reads(lock(1, "a", 800, 810, 1400, 1000)), reads(refused(2, "b", "k", 1000, 1100, gaveUpTaken))), []string{FalseTaken}},
		"a reader waits for no writer":     {calls(on("book0", reads(lock(1, "a", 10_800, 10_810, 13_400, 3000)), reads(lock(2, "b", 11_000, 13_100, 13_200, 3000)))...), []string{Unavailable}},
		"a reader waits for a writer":      {calls(on("book0", reads(lock(1, "a", 10_800, 10_810, 13_000, 3000)), lock(1, "c", 11_050, 13_010, 13_050, 3000), reads(lock(2, "b", 11_100, 13_060, 13_200, 3000)))...), nil},
		"a gate at the end": {func(h *history.History) {
			h.Seen = []*history.Seen{{At: at(15_100), Master: 11, Key: "k:redlock:gate", TTL: forMs, Last: true}}
		}, []string{KeyKept}},

		"broken by an operator":                        {many(breaks, calls(digest(lock(1, "a", 1000, 1010, 1900, 1000), "d"), digest(lock(2, "b", 1050, 1120, 1200, 1000), "e"))), nil},
		"another was broken":                           {many(breaks, calls(digest(lock(1, "a", 1000, 1010, 1900, 1000), "f"), digest(lock(2, "b", 1050, 1120, 1200, 1000), "e"))), []string{Overlap}},
		"broken, and passed on beside another process": {many(breaks, calls(digest(lock(2, "b", 1050, 1120, 1900, 1000), "e"), digest(lock(1, "c", 1000, 1200, 1300, 1000), "d"))), nil},
		"broken, passed on, and granted again later":   {many(breaks, calls(digest(lock(1, "b", 1250, 1260, 1900, 1000), "e"), digest(lock(1, "c", 1000, 1200, 1300, 1000), "d"))), nil},
		"broken, granted again, and passed on":         {many(breaks, calls(digest(lock(1, "b", 1050, 1120, 1900, 1000), "e"), digest(lock(1, "c", 1000, 1200, 1300, 1000), "d"))), []string{Overlap}},
		"the same, where the younger grant has ended":  {many(breaks, calls(digest(lock(1, "b", 1050, 1120, 1150, 1000), "e"), digest(lock(2, "x", 1150, 1160, 1900, 1000), "f"), digest(lock(1, "c", 1000, 1200, 1300, 1000), "d"))), []string{Overlap}},

		"tokens in order":                       {calls(fenced(lock(1, "a", 1000, 1010, 1100, 1000), 4), fenced(lock(2, "b", 1050, 1110, 1200, 1000), 5)), nil},
		"a token again":                         {calls(fenced(lock(1, "a", 1000, 1010, 1100, 1000), 4), fenced(lock(2, "b", 1050, 1110, 1200, 1000), 4)), []string{Token, Token}},
		"a smaller token":                       {calls(fenced(lock(1, "a", 1000, 1010, 1100, 1000), 5), fenced(lock(2, "b", 1200, 1210, 1300, 1000), 4)), []string{Token, Token}},
		"the register refuses a holder":         {calls(fenced(lock(1, "a", 1000, 1010, 1100, 1000), 5, history.Write{At: at(1050), Valid: true})), []string{Refused}},
		"the register refuses one that is late": {calls(fenced(lock(1, "a", 1000, 1010, 1100, 1000), 5, history.Write{At: at(1050)})), nil},

		"beyond its context": {calls(refused(1, "a", "k", 1000, 3101, history.Deadline)), []string{Late}},
		"beyond its context, in a process that stood still": {many(calls(refused(1, "a", "k", 1000, 3301, history.Deadline)), func(h *history.History) {
			h.Pauses = []*history.Pause{{Client: 1, From: at(3000), To: at(3250), Waited: 250 * forMs}}
		}), nil},

		"its own key is taken":                       {calls(refused(1, "own", "own-1", 1000, 1005, history.Taken)), []string{FalseTaken}},
		"its own key is taken, of an earlier client": {many(calls(refused(1, "own", "own-1", 1000, 1005, history.NoQuorum), refused(1, "own", "own-1", 1010, 1015, history.Taken)), func(h *history.History) { h.Change = true }), nil},
		"taken, and no other asked":                  {calls(refused(1, "a", "k", 1000, 1005, history.Taken)), []string{FalseTaken}},
		"taken":                                      {calls(lock(2, "b", 900, 910, 1100, 1000), refused(1, "a", "k", 1000, 1005, history.Taken)), nil},
		"gave up: taken":                             {calls(lock(2, "b", 900, 910, 1100, 1000), refused(1, "a", "k", 1000, 3000, gaveUpTaken)), nil},
		"gave up: taken, and none had it":            {calls(lock(2, "b", 900, 910, 1100, 1000), refused(1, "a", "k", 2200, 3000, gaveUpTaken)), []string{FalseTaken}},
		"gave up: taken, in an outage": {many(calls(lock(2, "b", 900, 910, 1100, 1000), refused(1, "a", "k", 1000, 3000, gaveUpTaken)), func(h *history.History) {
			h.Faults = []*history.Fault{fault("cut", nemesis.Majority, 1200, 4000, 1, 2)}
		}), []string{FalseTaken}},
		"gave up: taken, in an outage, beside a holder of its process": {many(calls(lock(1, "b", 900, 910, 3100, 1000), refused(1, "a", "k", 1000, 3000, gaveUpTaken)), func(h *history.History) {
			h.Faults = []*history.Fault{fault("cut", nemesis.Majority, 1200, 4000, 1, 2)}
		}), nil},
		"gave up: taken, in an outage of which it slept most": {many(calls(lock(2, "b", 900, 910, 1100, 1000), refused(1, "a", "k", 1000, 3000, gaveUpTaken)), func(h *history.History) {
			h.Faults = []*history.Fault{fault("cut", nemesis.Majority, 1200, 4000, 1, 2), fault("stop-client", nemesis.Majority, 1100, 2900, 1)}
		}), nil},

		"not held within its validity": {calls(with(lock(1, "a", 1000, 1010, 1100, 1000), func(c *history.Call) { c.Release = history.NotHeld })), []string{FalseLoss}},
		"not held after three masters were killed": {many(calls(with(lock(1, "a", 1000, 1010, 1100, 1000), func(c *history.Call) { c.Release = history.NotHeld })), func(h *history.History) {
			f := fault("kill", nemesis.Majority, 1020, 1050, 1, 2)
			f.Masters = []int{11, 12, 13}
			h.Faults = []*history.Fault{f}
		}), nil},
		"a kept lock lost beside a quorum": {calls(kept), []string{Lost}},
		"a kept lock lost without one":     {many(calls(kept), faults(of(fault("cut", nemesis.Majority, 1200, 4000, 1, 2), 11, 12, 13))), nil},
		"a kept lock lost while one master is silent, and two are dialed": {
			many(calls(kept), faults(of(fault("reset", nemesis.Minority, 500, 900, 1, 2), 13, 14), of(fault("loss", nemesis.Minority, 2000, 4000, 1, 2), 15))), nil},
		"the same, and one is back": {
			many(calls(kept), faults(of(fault("reset", nemesis.Minority, 500, 900, 1, 2), 13, 14), of(fault("loss", nemesis.Minority, 2000, 4000, 1, 2), 15)), func(h *history.History) {
				for client := 1; client <= 2; client++ {
					h.Nodes = append(h.Nodes, &history.Node{Client: client, At: at(1000), Addr: "10.77.0.14:6379", Up: true})
				}
			}), []string{Lost}},

		"a key beyond its TTL": {many(calls(refused(1, "once", "once-1-1", 1000, 1005, history.Deadline)), func(h *history.History) {
			h.Seen = []*history.Seen{{At: at(2400), Master: 11, Key: "once-1-1", TTL: forMs}}
		}), []string{KeyKept}},
		"a key beyond its TTL that the wire held back": {many(calls(refused(1, "once", "once-1-1", 1000, 1005, history.Deadline)), func(h *history.History) {
			h.Seen = []*history.Seen{{At: at(2400), Master: 11, Key: "once-1-1", TTL: forMs}}
			h.Faults = []*history.Fault{fault("freeze", nemesis.Minority, 900, 1500, 1, 2)}
		}), nil},
		"a key beyond its TTL, of a wire that stood still": {many(calls(refused(1, "once", "once-1-1", 1000, 1005, history.Deadline)), func(h *history.History) {
			h.Seen = []*history.Seen{{At: at(2400), Master: 11, Key: "once-1-1", TTL: forMs}}
			h.Pauses = []*history.Pause{{From: at(1000), To: at(1200), Waited: 200 * forMs}}
		}), nil},
		"a key of a call that is over, long after the heal": {many(calls(with(refused(1, "once", "once-1-1", 9000, 9005, history.Deadline), func(c *history.Call) { c.TTL = 20 * time.Second })), func(h *history.History) {
			h.Seen = []*history.Seen{{At: at(12_500), Master: 11, Key: "once-1-1", TTL: forMs}}
		}), []string{KeyKept}},
		"a key at the end": {func(h *history.History) {
			h.Seen = []*history.Seen{{At: at(15_100), Master: 11, Key: "k", TTL: forMs, Last: true}}
		}, []string{KeyKept}},
		"a key without a TTL": {func(h *history.History) { h.Seen = []*history.Seen{{At: at(5000), Master: 11, Key: "k", TTL: -1}} }, []string{NoExpiry}},
		"a queue at the end": {func(h *history.History) {
			h.Seen = []*history.Seen{{At: at(15_100), Master: 11, Key: "{k}:redlock:q", TTL: forMs, Last: true}}
		}, nil},

		"a failure with the network healed": {calls(refused(1, "a", "k", 13_500, 13_550, history.NoQuorum)), []string{Unavailable}},
		"no grant after the heal": {func(h *history.History) {
			for _, c := range h.Calls {
				if c.Client == 1 && c.Asked >= at(10_000) && c.Asked < at(12_000) {
					c.Result = history.Deadline
				}
			}
		}, []string{Unavailable}},
		"free and wanted": {calls(refused(1, "a", "k", 11_000, 12_500, history.GaveUp+history.Nothing)), []string{Unavailable}},
		"locked for a bare client that has gone, and wanted": {calls(refused(1, "a", "k", 11_000, 12_500, history.GaveUp+history.Nothing), with(refused(2, "front", "k", 9000, 10_900, history.Deadline), func(c *history.Call) {
			c.Library, c.Unanswered, c.TTL = history.Front, true, 2*time.Second
		})), nil},
		"held and wanted": {calls(lock(2, "b", 10_900, 10_950, 12_450, 2000), refused(1, "a", "k", 11_000, 12_500, gaveUpTaken)), nil},

		"an end without one":     {func(h *history.History) { h.Ends = h.Ends[:1] }, []string{Unclean}},
		"a goroutine that stays": {func(h *history.History) { h.Ends[0].After++ }, []string{Unclean}},
		"an endless log":         {func(h *history.History) { h.Ends[0].LogOfNode = 13 }, []string{Noise}},
	} {
		t.Run(name, func(t *testing.T) {
			h := healthy()
			x.change(h)
			v := Check(h)
			var rules []string
			for _, f := range v.Violations {
				rules = append(rules, f.Rule)
			}
			assert.ElementsMatch(t, x.rules, rules, "%v", v.Violations)
		})
	}
}

// TestFigures: how long a client that was hit was without a grant, and how long until the first after the end.
func TestFigures(t *testing.T) {
	h := healthy()
	for _, c := range h.Calls {
		if c.Client == 1 && c.Asked >= at(2000) && c.Asked < at(4000) {
			c.Result = history.GaveUp + history.NoQuorum
		}
	}
	h.Faults = []*history.Fault{fault("cut", nemesis.Majority, 2000, 3500, 1), fault("mess", "", 6000, 7000, 1, 2)}
	h.Faults[1].Alone = false
	h.Dials = []*history.Dials{{At: at(3000), Client: 1, Master: 11, Count: 7}}
	v := Check(h)
	require := assert.New(t)
	require.Len(v.Faulty, 1)
	f := v.Faulty[0]
	require.Equal("cut/majority", f.Fault)
	require.Equal([]float64{1500}, f.Without)
	require.Equal([]float64{502}, f.After)
	require.Equal(15, f.NoQuorum)
	require.Equal(int64(7), f.Dials)
}
