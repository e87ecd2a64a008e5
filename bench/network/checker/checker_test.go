package checker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/network/history"
	"github.com/redlock-go/redlock/bench/network/nemesis"
)

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
		h.Breaks = []*history.Break{{Client: 1, Key: "broken0", Digest: "d", Holder: "client1", Called: at(1100), Answered: at(1110)}}
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
	grouped := func(seen ...*history.Seen) change {
		return func(h *history.History) { h.Groups, h.Seen = true, append(h.Seen, seen...) }
	}
	seen := func(key string, ms, master int) *history.Seen {
		return &history.Seen{At: at(ms), Master: master, Key: key, TTL: forMs}
	}
	job := func(c *history.Call) *history.Call {
		return with(c, func(c *history.Call) { c.API, c.Options.AtLeast = "TryDo", 700*forMs })
	}
	limited := func(c *history.Call, attempts int, o redlock.Options) *history.Call {
		c.Attempts, c.Options, c.Deadline = attempts, o, c.Asked.Add(2*time.Second)
		return c
	}
	loses := func(c *history.Call) *history.Call { c.Release = history.NotHeld; return c }
	named := func(c *history.Call) *history.Call { c.Digest = "d"; return c }
	atTheEnd := func(h *history.History) {
		h.Seen = []*history.Seen{{At: at(15_100), Master: 11, Key: "k", TTL: forMs, Last: true}}
	}
	first, second := []int{11, 12, 13}, []int{16, 17, 18}
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

		"broken by an operator":                                                  {many(breaks, calls(digest(lock(1, "a", 1000, 1010, 1900, 1000), "d"), digest(lock(2, "b", 1050, 1120, 1200, 1000), "e"))), nil},
		"another was broken":                                                     {many(breaks, calls(digest(lock(1, "a", 1000, 1010, 1900, 1000), "f"), digest(lock(2, "b", 1050, 1120, 1200, 1000), "e"))), []string{Overlap}},
		"broken, and passed on beside another process":                           {many(breaks, calls(digest(lock(2, "b", 1050, 1120, 1900, 1000), "e"), digest(lock(1, "c", 1000, 1200, 1300, 1000), "d"))), nil},
		"broken, passed on, and granted again later":                             {many(breaks, calls(digest(lock(1, "b", 1250, 1260, 1900, 1000), "e"), digest(lock(1, "c", 1000, 1200, 1300, 1000), "d"))), nil},
		"broken, granted again, and passed on":                                   {many(breaks, calls(digest(lock(1, "b", 1050, 1120, 1900, 1000), "e"), digest(lock(1, "c", 1000, 1200, 1300, 1000), "d"))), []string{Overlap}},
		"broken, passed on, and granted again to the next client of the process": {many(breaks, calls(with(digest(lock(1, "b", 1050, 1120, 1900, 1000), "e"), func(c *history.Call) { c.Step = 1 }), digest(lock(1, "c", 1000, 1200, 1300, 1000), "d"))), nil},
		"the same, where the younger grant has ended":                            {many(breaks, calls(digest(lock(1, "b", 1050, 1120, 1150, 1000), "e"), digest(lock(2, "x", 1150, 1160, 1900, 1000), "f"), digest(lock(1, "c", 1000, 1200, 1300, 1000), "d"))), []string{Overlap}},

		"two at once, before one is broken":                 {many(breaks, calls(digest(lock(1, "a", 1000, 1010, 1900, 1000), "d"), digest(lock(2, "b", 1050, 1090, 1200, 1000), "e"))), []string{Overlap}},
		"broken, beside an older one that is passed on":     {many(breaks, calls(digest(lock(1, "a", 1000, 1010, 1900, 1000), "d"), digest(lock(2, "b", 900, 950, 1000, 1000), "e"), digest(lock(2, "c", 1050, 1120, 1200, 1000), "e"))), []string{Overlap}},
		"not held, for it was broken":                       {many(breaks, calls(digest(loses(lock(1, "a", 1000, 1010, 1200, 1000)), "d"))), nil},
		"not held, before it was broken":                    {many(breaks, calls(digest(loses(lock(1, "a", 1000, 1010, 1050, 1000)), "d"))), []string{FalseLoss}},
		"not held, and another was broken":                  {many(breaks, calls(digest(loses(lock(1, "a", 1200, 1210, 1300, 1000)), "e"))), []string{FalseLoss}},
		"a smaller token, passed on after a break":          {many(breaks, calls(fenced(digest(lock(1, "a", 900, 910, 1000, 1000), "d"), 4), fenced(digest(lock(2, "b", 1100, 1120, 1190, 1000), "e"), 70), fenced(digest(lock(1, "c", 1150, 1200, 1300, 1000), "d"), 5))), nil},
		"a smaller token, before its lock is broken":        {many(breaks, calls(fenced(digest(lock(2, "b", 900, 910, 990, 1000), "e"), 70), fenced(digest(lock(1, "a", 1000, 1010, 1090, 1000), "d"), 5))), []string{Token, Token}},
		"the register refuses one before it is broken":      {many(breaks, calls(fenced(digest(lock(1, "a", 1000, 1010, 1200, 1000), "d"), 5, history.Write{At: at(1050), Valid: true}))), []string{Refused}},
		"the register refuses one that does not know of it": {many(breaks, calls(fenced(digest(lock(1, "a", 1000, 1010, 1200, 1000), "d"), 5, history.Write{At: at(1150), Valid: true}))), nil},
		"broken, with its name":                             {many(breaks, calls(limited(digest(lock(1, "a", 1000, 1010, 1200, 1000), "d"), 0, redlock.Options{Name: "n"})), func(h *history.History) { h.Breaks[0].Holder = "n" }), nil},
		"broken, with another name":                         {many(breaks, calls(limited(digest(lock(1, "a", 1000, 1010, 1200, 1000), "d"), 0, redlock.Options{Name: "n"}))), []string{Misnamed}},

		"a job once in its term":               {calls(job(lock(1, "a", 1000, 1010, 1012, 1000)), job(lock(2, "b", 1690, 1700, 1705, 1000))), nil},
		"a job twice in its term":              {calls(job(lock(1, "a", 1000, 1010, 1012, 1000)), job(lock(2, "b", 1680, 1699, 1705, 1000))), []string{Overlap}},
		"a job twice, in no time":              {calls(job(lock(1, "a", 1000, 1010, 1010, 1000)), job(lock(2, "b", 1680, 1699, 1699, 1000))), []string{Overlap}},
		"a job, and a lock without a term":     {calls(lock(1, "a", 1000, 1010, 1012, 1000), job(lock(2, "b", 1020, 1030, 1035, 1000))), nil},
		"a key in its term, at the end":        {many(calls(job(lock(1, "a", 14_500, 14_510, 14_520, 100))), atTheEnd), nil},
		"a key beyond its term, at the end":    {many(calls(job(lock(1, "a", 14_200, 14_210, 14_220, 100))), atTheEnd), []string{KeyKept}},
		"gave up with its Wait":                {calls(lock(2, "b", 900, 910, 1100, 1000), limited(refused(1, "a", "k", 1000, 1096, gaveUpTaken), 3, redlock.Options{Wait: 100 * forMs})), nil},
		"gave up long after its Wait":          {calls(lock(2, "b", 900, 910, 1100, 1000), limited(refused(1, "a", "k", 1000, 1201, gaveUpTaken), 3, redlock.Options{Wait: 100 * forMs})), []string{Late}},
		"gave up before its Wait":              {calls(lock(2, "b", 900, 910, 1100, 1000), limited(refused(1, "a", "k", 1000, 1090, gaveUpTaken), 3, redlock.Options{Wait: 100 * forMs})), []string{Early}},
		"gave up before its context":           {calls(lock(2, "b", 900, 910, 3100, 3000), limited(refused(1, "a", "k", 1000, 2990, gaveUpTaken), 3, redlock.Options{})), []string{Early}},
		"gave up with its attempts":            {calls(lock(2, "b", 900, 910, 1100, 1000), limited(refused(1, "a", "k", 1000, 1090, gaveUpTaken), 3, redlock.Options{Attempts: 3})), nil},
		"gave up with an attempt to come":      {calls(lock(2, "b", 900, 910, 1100, 1000), limited(refused(1, "a", "k", 1000, 1090, gaveUpTaken), 2, redlock.Options{Attempts: 3})), []string{Early}},
		"gave up after an attempt too many":    {calls(lock(2, "b", 900, 910, 1100, 1000), limited(refused(1, "a", "k", 1000, 1090, gaveUpTaken), 4, redlock.Options{Attempts: 3})), []string{Early}},
		"few attempts, and the key was wanted": {calls(refused(2, "b", "k", 1000, 3000, history.GaveUp+history.NoQuorum), limited(refused(1, "a", "k", 1000, 1090, gaveUpTaken), 1, redlock.Options{Attempts: 1})), nil},

		"keys of two groups":                                         {grouped(seen("j", 1000, 11), seen("j", 1100, 15), seen("k", 1000, 16), seen("k", 1000, 20)), nil},
		"gave up: taken, beside another's attempt":                   {calls(refused(2, "b", "k", 1000, 3000, history.GaveUp+history.NoQuorum), refused(1, "a", "k", 1100, 1900, gaveUpTaken)), []string{FalseTaken}},
		"gave up: taken, beside another's attempt in several groups": {many(grouped(), calls(refused(2, "b", "k", 1000, 3000, history.GaveUp+history.NoQuorum), refused(1, "a", "k", 1100, 1900, gaveUpTaken))), nil},
		"gave up: taken, beside none in several groups":              {many(grouped(), calls(refused(1, "a", "k", 1100, 1900, gaveUpTaken))), []string{FalseTaken}},
		"a key in two groups":                                        {grouped(seen("k", 1000, 15), seen("k", 1100, 16)), []string{Strayed}},
		"the tokens' floor in each group":                            {grouped(seen("redlock:fence", 1000, 15), seen("redlock:fence", 1100, 16)), nil},
		"granted without a quorum":                                   {many(faults(of(fault("cut", nemesis.Majority, 1000, 4000, 1, 2), first...)), calls(named(lock(1, "a", 1200, 1210, 1300, 1000)))), []string{Unbacked}},
		"passed on without a quorum":                                 {many(faults(of(fault("cut", nemesis.Majority, 1000, 4000, 1, 2), first...)), calls(named(lock(1, "b", 950, 960, 1100, 1000)), named(lock(1, "a", 1200, 1210, 1300, 1000)))), nil},
		"granted as a quorum is silenced":                            {many(faults(of(fault("cut", nemesis.Majority, 1000, 4000, 1, 2), first...)), calls(named(lock(1, "a", 1199, 1210, 1300, 1000)))), nil},
		"granted beside a minority":                                  {many(faults(of(fault("cut", nemesis.Minority, 1000, 4000, 1, 2), first[:2]...)), calls(named(lock(1, "a", 1200, 1210, 1300, 1000)))), nil},
		"granted without a quorum of its group":                      {many(grouped(seen("k", 900, 20)), faults(of(fault("cut", nemesis.Majority, 1000, 4000, 1, 2), second...)), calls(named(lock(1, "a", 1200, 1210, 1300, 1000)))), []string{Unbacked}},
		"granted without a quorum of another group":                  {many(grouped(seen("k", 900, 15)), faults(of(fault("cut", nemesis.Majority, 1000, 4000, 1, 2), second...)), calls(named(lock(1, "a", 1200, 1210, 1300, 1000)))), nil},
		"a kept lock lost without a quorum of its group":             {many(grouped(seen("k", 900, 20)), calls(kept), faults(of(fault("cut", nemesis.Majority, 1200, 4000, 1, 2), second...))), nil},
		"a kept lock lost without one of another group":              {many(grouped(seen("k", 900, 15)), calls(kept), faults(of(fault("cut", nemesis.Majority, 1200, 4000, 1, 2), second...))), []string{Lost}},
		"not held after three of another group were killed":          {many(grouped(seen("k", 900, 15)), calls(loses(lock(1, "a", 1000, 1010, 1100, 1000))), faults(of(fault("kill", nemesis.Majority, 1020, 1050, 1, 2), second...))), []string{FalseLoss}},

		"tokens in order": {calls(fenced(lock(1, "a", 1000, 1010, 1100, 1000), 4), fenced(lock(2, "b", 1050, 1110, 1200, 1000), 5)), nil},
		"a token again":   {calls(fenced(lock(1, "a", 1000, 1010, 1100, 1000), 4), fenced(lock(2, "b", 1050, 1110, 1200, 1000), 4)), []string{Token, Token}},
		"a smaller token": {calls(fenced(lock(1, "a", 1000, 1010, 1100, 1000), 5), fenced(lock(2, "b", 1200, 1210, 1300, 1000), 4)), []string{Token, Token}},
		"a token again, of two that asked at once": {calls(fenced(lock(1, "a", 1000, 1010, 1100, 1000), 4), with(fenced(lock(2, "b", 1005, 1110, 1200, 1000), 4), func(c *history.Call) { c.From = 0 })), []string{Token}},
		"the register refuses a holder":            {calls(fenced(lock(1, "a", 1000, 1010, 1100, 1000), 5, history.Write{At: at(1050), Valid: true})), []string{Refused}},
		"the register refuses one that is late":    {calls(fenced(lock(1, "a", 1000, 1010, 1100, 1000), 5, history.Write{At: at(1050)})), nil},

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
		"a key at the end":    {atTheEnd, []string{KeyKept}},
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
