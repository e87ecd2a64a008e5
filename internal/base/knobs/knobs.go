// Package knobs holds the settings of a client for tests and measurements alone. They are no fields
// of redlock.Config, so the documentation of the root package shows its users' settings and nothing
// else.
package knobs

import (
	"io"
	"time"
)

// Knobs are the settings. A zero field means its default.
type Knobs struct {
	Rand         io.Reader        // the source of tokens; several goroutines read it at once. Default: crypto/rand
	FenceClock   func() time.Time // the time of day for making fencing tokens. Default: time.Now
	FenceSet     string           // the key at which nodes keep fencing tokens. Default: redlock:fence
	Scripted     bool             // no DELIFEQ and DELEX where nodes have them
	CloseTimeout time.Duration    // how long Close waits for work at most. Default: 250 ms
	// TrustRestarts turns off the quarantine after restarts, as ?persistent=yes does for one node.
	// A persistent node also keeps its vote in fencing.
	TrustRestarts bool
	// MaxInFlight bounds the replies owed by a node. Default: 65536. Queries of waiting callers
	// have a quarter more.
	MaxInFlight int
}

var of func(config any) **Knobs

// Register is called once, by the root package. f returns where a *redlock.Config keeps its knobs.
func Register(f func(config any) **Knobs) { of = f }

// Of returns the knobs of a *redlock.Config, to be changed. An earlier copy of the Config keeps its
// knobs.
func Of(config any) *Knobs {
	at := of(config)
	k := new(Knobs)
	if *at != nil {
		*k = **at
	}
	*at = k
	return k
}

// Value returns the knobs at k, or their defaults.
func Value(k *Knobs) Knobs {
	if k == nil {
		return Knobs{}
	}
	return *k
}

// With returns a copy of a redlock.Config with changed knobs.
func With[C any](config C, change func(*Knobs)) C {
	change(Of(&config))
	return config
}
