// Package knobs holds the settings of a client for tests, measurements and the command alone. They are not fields of
// redlock.Config, so the documentation of the root package shows only the settings for its users.
package knobs

import (
	"context"
	"io"
	"net/netip"
	"reflect"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// Knobs are the settings. A zero field means its default.
type Knobs struct {
	Rand         io.Reader        // the source of tokens; several goroutines read it at once. Default: crypto/rand
	FenceClock   func() time.Time // the time of day for making fencing tokens. Default: time.Now
	FenceSet     string           // the key at which nodes keep fencing tokens. Default: redlock:fence
	Scripted     bool             // no DELIFEQ and DELEX where nodes have them
	CloseTimeout time.Duration    // the longest time for which Close waits for work. Default: 250 ms
	Stragglers   time.Duration    // New waits for the other nodes for as long as a quorum took, and this time. Default: 40 ms
	// TrustRestarts turns off the quarantine after restarts, as ?persistent=yes does for one node.
	// A persistent node also keeps its vote in fencing.
	TrustRestarts bool
	// MaxInFlight bounds the replies owed by a node. Default: 65536. Queries of waiting callers
	// have a quarter more.
	MaxInFlight int
	// Looks makes a fenced client give nodes no notice, and so write nothing to them, until an act of fencing begins.
	Looks bool
	// AnyToken lets RecoverFencing take a number far beyond all those shown by the nodes and the clock.
	AnyToken bool
	// Lookup returns the addresses of a name in place of the system's resolver, also for a Dialer.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Value returns the knobs, or their defaults.
func (k *Knobs) Value() Knobs {
	if k == nil {
		return Knobs{}
	}
	return *k
}

// Of returns the knobs of a *redlock.Config, for changes: the config's own ones. An earlier copy of the Config keeps
// its own.
func Of(config any) *Knobs { return of[Knobs](config) }

// of returns a copy of the field knobs of a config, and puts it into the config.
func of[K any](config any) *K {
	field := reflect.ValueOf(config).Elem().FieldByName("knobs")
	at := reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Interface().(**K)
	k := new(K)
	if *at != nil {
		*k = **at
	}
	*at = k
	return k
}

// With returns a copy of a redlock.Config with changed knobs.
func With[C any](config C, change func(*Knobs)) C {
	change(Of(&config))
	return config
}

// Conn has the settings of a conn.Config needed only by our own client and tests.
type Conn struct {
	Clock clock.Clock
	// Rand returns a number from [0, 1), for the jitter of reconnects. Several goroutines call it at once.
	Rand func() float64
	// Lookup returns the addresses of a name in place of the system's resolver, also for a Dialer.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// Stragglers is the extra time of the other nodes for their first dial: the time taken by the quorum, once more,
	// and this time, or 40 ms.
	Stragglers time.Duration
	// errors.Is finds none of the Hidden errors in the errors of nodes. To the owner's callers they have another meaning.
	// A Dialer, for instance, may return one, and it would be wrong there. Errors of contexts are always hidden.
	Hidden []error
	// OnStays is called, like OnDown, for a node that stays down, after each dial. isNew is true if its kind of failure
	// is new since it went down.
	OnStays func(node int, isNew bool)
}

// OfConn returns the knobs of a *conn.Config, for changes, as Of does.
func OfConn(config any) *Conn { return of[Conn](config) }
