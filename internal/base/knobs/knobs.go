// Package knobs holds the settings of a client for tests, measurements and the command alone. They are no fields
// of redlock.Config, so the documentation of the root package shows its users' settings and nothing
// else.
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
	CloseTimeout time.Duration    // how long Close waits for work at most. Default: 250 ms
	Stragglers   time.Duration    // how much longer than a quorum, and as long again, New waits for the other nodes. Default: 40 ms
	// TrustRestarts turns off the quarantine after restarts, as ?persistent=yes does for one node.
	// A persistent node also keeps its vote in fencing.
	TrustRestarts bool
	// MaxInFlight bounds the replies owed by a node. Default: 65536. Queries of waiting callers
	// have a quarter more.
	MaxInFlight int
	// Looks is a fenced client that gives nodes no notice, and so writes nothing to them, until an act of fencing begins.
	Looks bool
	// AnyToken has RecoverFencing take a number far beyond all that nodes and the clock show.
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

// Of returns the knobs of a *redlock.Config, to be changed: of its field knobs. An earlier copy of the Config keeps
// its own.
func Of(config any) *Knobs { return of[Knobs](config) }

// of returns a copy of the field knobs of a config, and has the config use it.
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

// Conn are the settings of a conn.Config that only our own client, and tests, need.
type Conn struct {
	Clock clock.Clock
	// Rand returns a number from [0, 1), for the jitter of reconnects. It is called by several goroutines at once.
	Rand func() float64
	// Lookup returns the addresses of a name in place of the system's resolver, also for a Dialer.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// Stragglers is how much longer than a quorum the other nodes have for their first dial: as long again as it has
	// taken, and this time, or 40 ms.
	Stragglers time.Duration
	// errors.Is finds none of the Hidden errors in the errors of nodes. To the owner's callers they have another meaning.
	// A Dialer, for instance, may return one, and it would be wrong there. Errors of contexts are always hidden.
	Hidden []error
	// OnStays is called, like OnDown, for a node that stays down, after each dial: with isNew where its kind of failure is
	// new since it went down.
	OnStays func(node int, isNew bool)
	// LooksAtEach has servers asked for their role also before batches for one node: see conn.Config.Looks.
	LooksAtEach bool
}

// OfConn returns the knobs of a *conn.Config, to be changed, as Of does.
func OfConn(config any) *Conn { return of[Conn](config) }
