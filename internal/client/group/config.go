package group

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/gate"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/base/metrics"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/fence"
	"github.com/redlock-go/redlock/internal/client/waiting"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// Config configures a [Group]. The root package fills it, and documents the settings. Settings of the engine and of
// the fleet stand in the Config of their package: each is set once and not copied.
type Config struct {
	Nodes      []string // addresses, perhaps with credentials
	NextNodes  []string // likewise, while the nodes change
	In         Lists    // of one of several groups: its lists of groups
	Places     []string // of one of several groups, in each list: its number, and of how many
	Retry      Retry
	Name       string
	NoHandOver bool
	Logger     *slog.Logger // nil: slog.Default, for warnings and errors
	Fenced     bool
	NextMaxTTL time.Duration // the MaxTTL of fenced clients after a change; else 0
	knobs.Knobs
	Shared

	Engine engine.Config // New sets Clock, OnVote and OnPanic
	Conn   conn.Config   // New sets all but the user's settings

	// QuorumError returns the error of an operation without a quorum. AcquireError returns the error of an Acquire that
	// gave up after so many attempts. last is the error of the last attempt, if any. ended is the error of the context,
	// nil unless the context has ended the Acquire. All three are required. The others may be nil; the root package's
	// Hooks document where they are called.
	QuorumError  func(g *Group, op *engine.Op) error
	AcquireError func(key string, attempts int, waited time.Duration, last, ended error) error
	LostError    func(key string, cause error) error // of Do
	OnAttempt    func(engine.Attempt)
	OnAcquire    func(Acquisition)
	OnVote       func(kind engine.Kind, node int, addr string, o quorum.Outcome, err error)
	OnLockLost   func(key string, err error)

	OnNodeUp, OnNodeDown, OnNodeQuarantined func(metrics.Node)

	Tail    string // set by check: what follows the token in the value at a key, the Name and its mark
	members Members
	maxTTL  time.Duration // the present one, and the longer one of both
	longest time.Duration
}

// Shared is what a client has once for all its groups.
type Shared struct {
	Clock   *clock.System
	Servers *Servers        // of the nodes of all groups
	Peers   *engine.Peers   // the engines of all groups
	Ending  <-chan struct{} // closed when the client begins to close
	Ring    func()          // has all Turns called at once; it is called under locks, and does not block
	First   int             // the number of nodes of the groups before this one
	Number  int             // of groups before this one

	// Underway counts attempts that may yet send releases to an engine with nothing under way: on several keys, while the
	// caller waits for another group, and of a set that takes its keys one by one. An attempt counts from before nodes are
	// asked until its grants have an owner, or are given back. The end of a client waits for them before it ends a group.
	Underway *gate.Gate
}

// Retry is how an Acquire tries again.
type Retry = waiting.Retry

// check returns cfg with its defaults and the parsed addresses of the nodes. It does not set the defaults of the
// engine and the fleet.
func (cfg Config) check() (Config, error) {
	var err error
	if cfg.Logger == nil {
		cfg.Logger = slog.New(defaultLogger{})
	}
	if cfg.members, cfg.Conn.Addresses, err = parse(cfg.Nodes, cfg.NextNodes, cfg.In); err != nil {
		return cfg, err
	}
	cfg.Engine.Quorum = cfg.members.Quorum
	for _, d := range []struct {
		name  string
		value *time.Duration
	}{
		{"NodeTimeout", &cfg.Engine.Timeout},
		{"DialTimeout", &cfg.Conn.DialTimeout},
		{"StallTimeout", &cfg.Conn.StallTimeout},
	} {
		if *d.value < 0 {
			return cfg, fmt.Errorf("%s is %v, want 0 (the default) or more", d.name, *d.value)
		}
	}
	if d := cfg.Engine.Timeout; d > 0 && d < engine.MinTimeout {
		return cfg, fmt.Errorf("NodeTimeout is %v, want 0 (the default) or at least %v", d, engine.MinTimeout)
	}
	cfg.Conn.StallTimeout = cmp.Or(cfg.Conn.StallTimeout, max(stallTimeout, cfg.Engine.Timeout))
	if cfg.Retry, err = cfg.Retry.Check(); err != nil {
		return cfg, err
	}
	switch ttl := cfg.Engine.MaxTTL; {
	case ttl == 0:
	case ttl < engine.MinTTL || ttl > engine.MaxTTL:
		return cfg, fmt.Errorf("MaxTTL is %v, want 0 (the default) or %v to %v", ttl, engine.MinTTL, engine.MaxTTL)
	default:
		cfg.maxTTL, cfg.longest = ttl, max(ttl, cfg.NextMaxTTL)
	}
	if err := CheckName(cfg.Name); err != nil {
		return cfg, err
	}
	cfg.Conn.Name = cfg.Name
	cfg.Conn.Looks = !cfg.TrustRestarts
	cfg.FenceSet = cmp.Or(cfg.FenceSet, fence.DefaultSet)
	if cfg.FenceClock == nil {
		cfg.FenceClock = time.Now
	}
	switch ttl := cfg.NextMaxTTL; {
	case ttl == 0:
	case !cfg.Fenced:
		return cfg, errors.New("NextMaxTTL is set, and Fenced is not: set MaxTTL itself in one client after another, raise it before TTLs grow, lower it after they have shrunk")
	case ttl < engine.MinTTL || ttl > engine.MaxTTL:
		return cfg, fmt.Errorf("NextMaxTTL is %v, want 0 (no change) or %v to %v", ttl, engine.MinTTL, engine.MaxTTL)
	case ttl == cfg.Engine.MaxTTL:
		return cfg, fmt.Errorf("both MaxTTL and NextMaxTTL are %v: leave NextMaxTTL out unless it changes", ttl)
	default:
		cfg.Engine.MaxTTL = min(ttl, cfg.Engine.MaxTTL) // clients with one of the two alone wait for no longer
	}
	if cfg.Fenced && cfg.Engine.MaxTTL == 0 {
		return cfg, errors.New("MaxTTL is missing, and Fenced needs it: a node that has forgotten tokens has no vote for that long")
	}
	if cfg.Name != "" {
		cfg.Tail = token.NameMark + cfg.Name
	}
	if cfg.Engine.MaxWaiting < 0 {
		return cfg, fmt.Errorf("MaxWaiting is %d, want 0 (the default) or more", cfg.Engine.MaxWaiting)
	}
	cfg.Engine.MaxInFlight = cmp.Or(cfg.MaxInFlight, maxInFlight)
	cfg.Conn.MaxInFlight = cfg.Engine.MaxInFlight + engine.QueryRoom(cfg.Engine.MaxInFlight)
	if cfg.Engine.MaxWaiting == 0 {
		cfg.Engine.MaxWaiting = 64 << 10
	}
	for _, list := range [][]string{cfg.Nodes, cfg.NextNodes} {
		if n := len(list); n > 0 && n%2 == 0 {
			cfg.Logger.Warn("redlock: an even number of nodes tolerates no more failures than one less", "nodes", n, "quorum", quorum.Size(n))
		}
	}
	return cfg, nil
}

const (
	stallTimeout = time.Second // or the NodeTimeout, if longer
	maxInFlight  = 64 << 10    // as many operations as wait by default: no burst from their queue is more than the slowest node may owe
)

// maxName bounds Config.Name in bytes: it is in every command.
const maxName = 128

// CheckName refuses a name that servers do not take for a client.
func CheckName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("the Name has %d bytes, at most %d are allowed", len(name), maxName)
	}
	for _, r := range name {
		if r <= ' ' || r > '~' {
			return fmt.Errorf("the Name has %q in it, printable ASCII without spaces is allowed", r)
		}
	}
	return nil
}
