package checker

import (
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
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

// refused is a call that was not granted. One that gave up did so with its context.
func refused(client int, worker, key string, asked, answered int, result string) *history.Call {
	deadline := asked + 2000
	if strings.HasPrefix(result, history.GaveUp) {
		deadline = answered
	}
	return &history.Call{
		Client: client, Worker: string(rune('0'+client)) + "/" + worker, API: "Acquire", Library: history.Ours, Keys: []string{key},
		TTL: time.Second, Asked: at(asked), Deadline: at(deadline), Answered: at(answered), Result: result,
	}
}

func fault(kind, scope string, from, to int, hit ...int) *history.Fault {
	return &history.Fault{Kind: kind, Scope: scope, From: at(from), To: at(to), Hit: hit, Alone: true}
}

const gaveUpTaken = history.GaveUp + history.Taken
