package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
	"unicode"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fence"
	"github.com/redlock-go/redlock/internal/waiting"
	"github.com/redlock-go/redlock/quorum"
)

// Config configures a [Group]. The root package fills it, and documents the settings.
// Settings of the engine and of conn stand in the Config of their package, so that
// each is set once and not copied.
type Config struct {
	Nodes        []string // addresses, perhaps with credentials
	Retry        Retry
	CloseTimeout time.Duration
	MaxHold      time.Duration // 0: no limit
	Holder       string
	NoHandOver   bool
	Logger       *slog.Logger // nil: none
	Rand         io.Reader    // nil: crypto/rand
	Scripted     bool
	Fenced       bool
	FenceSet     string           // the key of the tokens
	FenceClock   func() time.Time // the wall clock of the tokens

	Engine engine.Config // New sets Clock, OnVote and OnPanic
	Conn   conn.Config   // New sets all but the user's settings

	// QuorumError returns the error for an operation that ended without a quorum.
	// AcquireError returns that of an Acquire which gave up after so many attempts,
	// with the errors of the last one, if any, and of its context, nil if that has not
	// ended it. Both are required.
	// The others may be nil; the root package's Hooks say who
	// calls them.
	QuorumError  func(g *Group, op *engine.Op) error
	AcquireError func(key string, attempts int, waited time.Duration, last, ended error) error
	OnAttempt    func(ctx context.Context, kind engine.Kind, key string, took time.Duration, votes quorum.Tally, err error)
	OnAcquire    func(ctx context.Context, key string, attempts int, waited time.Duration, handedOver bool, err error)
	OnVote       func(kind engine.Kind, node int, addr string, o quorum.Outcome, err error)
	OnLockLost   func(key string, err error)

	OnNodeUp, OnNodeDown, OnNodeGuarded func(conn.Node)
}

// Retry is how an Acquire tries again.
type Retry = waiting.Retry

// check returns cfg with its defaults and the parsed addresses of the nodes. It does
// not set the defaults that the engine and the fleet set themselves.
func (cfg Config) check() (Config, error) {
	n := len(cfg.Nodes)
	if n == 0 || n > quorum.MaxNodes {
		return cfg, fmt.Errorf("%d nodes, want 1 to %d", n, quorum.MaxNodes)
	}
	var err error
	if cfg.Conn.Addresses, err = conn.ParseAddresses(cfg.Nodes); err != nil {
		return cfg, err
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration // in place of 0
	}{
		{"NodeTimeout", &cfg.Engine.Timeout, 0}, // follows from the TTL
		{"DialTimeout", &cfg.Conn.DialTimeout, 0},
		{"StallTimeout", &cfg.Conn.StallTimeout, 0},
		{"CloseTimeout", &cfg.CloseTimeout, 250 * time.Millisecond},
		{"MaxHold", &cfg.MaxHold, 0},
	} {
		if *d.value < 0 {
			return cfg, fmt.Errorf("%s is %v, want 0 (the default) or more", d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	if cfg.Retry, err = cfg.Retry.Check(); err != nil {
		return cfg, err
	}
	switch ttl := cfg.Engine.MaxTTL; {
	case ttl == 0:
	case ttl < engine.MinTTL || ttl > engine.MaxTTL:
		return cfg, fmt.Errorf("MaxTTL is %v, want 0 (the default) or %v to %v", ttl, engine.MinTTL, engine.MaxTTL)
	default:
		cfg.Conn.Quarantine = ttl + quorum.Drift(ttl)
	}
	if err := checkHolder(cfg.Holder); err != nil {
		return cfg, err
	}
	if cfg.FenceSet = cmp.Or(cfg.FenceSet, fence.DefaultSet); cfg.FenceClock == nil {
		cfg.FenceClock = time.Now
	}
	switch {
	case !cfg.Fenced:
	case cfg.Engine.MaxTTL == 0:
		return cfg, errors.New("the MaxTTL is missing, which Fenced needs: a node that has forgotten has no vote until locks of that TTL have ended")
	case len(cfg.FenceSet) > engine.MaxKey:
		return cfg, fmt.Errorf("the FenceSet has %d bytes, at most %d are allowed", len(cfg.FenceSet), engine.MaxKey)
	}
	if cfg.Holder != "" {
		cfg.Holder = HolderMark + cfg.Holder
	}
	if cfg.Engine.MaxWaiting < 0 {
		return cfg, fmt.Errorf("MaxWaiting is %d, want 0 (the default) or more", cfg.Engine.MaxWaiting)
	}
	if cfg.Conn.MaxInFlight < 0 || cfg.Conn.MaxInFlightBytes < 0 {
		return cfg, fmt.Errorf("MaxInFlight is %d and MaxInFlightBytes %d, want 0 (the default) or more", cfg.Conn.MaxInFlight, cfg.Conn.MaxInFlightBytes)
	}
	cfg.Engine.MaxInFlight = cmp.Or(cfg.Conn.MaxInFlight, conn.DefaultMaxInFlight)
	cfg.Conn.MaxInFlight = cfg.Engine.MaxInFlight + engine.QueryRoom(cfg.Engine.MaxInFlight)
	if cfg.Engine.MaxWaiting == 0 {
		cfg.Engine.MaxWaiting = 64 << 10
	}
	if n%2 == 0 && cfg.Logger != nil {
		cfg.Logger.Warn("redlock: an even number of nodes tolerates no more failures than one less", "nodes", n, "quorum", quorum.Size(n))
	}
	return cfg, nil
}

// HolderMark stands between a token and the holder's text. No token has it.
const HolderMark = "@"

// maxHolder bounds Config.Holder in bytes: it is in every command.
const maxHolder = 128

// checkHolder refuses a text that does not fit after a token.
func checkHolder(holder string) error {
	if len(holder) > maxHolder {
		return fmt.Errorf("the Holder has %d bytes, at most %d are allowed", len(holder), maxHolder)
	}
	for _, r := range holder {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("the Holder has %q in it, which cannot be printed", r)
		}
	}
	return nil
}

// Redact returns nodes without credentials. Of an address that cannot be parsed it
// returns nothing, since any part of it may be a password.
func Redact(nodes []string) []string {
	shown := make([]string, len(nodes))
	for i, text := range nodes {
		shown[i] = "(not an address)"
		if a, err := conn.ParseAddress(text); err == nil {
			shown[i] = a.String()
		}
	}
	return shown
}
