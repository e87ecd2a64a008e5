package session

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/quorum"
)

// Config is the root package's, of which it says what the fields mean, with
// what package conn sees to apart from the rest.
type Config struct {
	Nodes              []string
	NodeTimeout        time.Duration
	RetryMin, RetryMax time.Duration
	CloseTimeout       time.Duration
	MaxWaiting         int
	MaxTTL             time.Duration
	Logger             *slog.Logger
	Hooks              Hooks
	Rand               io.Reader
	Scripted           bool

	Conn conn.Config // Addresses, Probes, Quarantine, Clock, OnUp and OnDown are set by Open
}

// check returns cfg with its defaults and its nodes' addresses.
func (cfg Config) check() (Config, error) {
	if n := len(cfg.Nodes); n == 0 || n > quorum.MaxNodes {
		return cfg, fmt.Errorf("%d nodes, want 1 to %d", n, quorum.MaxNodes)
	}
	var err error
	if cfg.Conn.Addresses, err = conn.ParseAddresses(cfg.Nodes); err != nil {
		return cfg, err
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"NodeTimeout", &cfg.NodeTimeout, 0}, // follows from the TTL
		{"RetryMin", &cfg.RetryMin, 50 * time.Millisecond},
		{"RetryMax", &cfg.RetryMax, max(250*time.Millisecond, cfg.RetryMin)},
		{"DialTimeout", &cfg.Conn.DialTimeout, conn.DefaultDialTimeout},
		{"StallTimeout", &cfg.Conn.StallTimeout, conn.DefaultStallTimeout},
		{"CloseTimeout", &cfg.CloseTimeout, 250 * time.Millisecond},
	} {
		if *d.value < 0 {
			return cfg, fmt.Errorf("%s is negative", d.name)
		}
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	if cfg.RetryMin > cfg.RetryMax {
		return cfg, fmt.Errorf("RetryMin %v is above RetryMax %v", cfg.RetryMin, cfg.RetryMax)
	}
	switch {
	case cfg.MaxTTL == 0:
		cfg.MaxTTL = engine.MaxTTL
	case cfg.MaxTTL < engine.MinTTL || cfg.MaxTTL > engine.MaxTTL:
		return cfg, fmt.Errorf("MaxTTL is %v, from %v to %v are allowed", cfg.MaxTTL, engine.MinTTL, engine.MaxTTL)
	default:
		cfg.Conn.Quarantine = cfg.MaxTTL + quorum.Drift(cfg.MaxTTL)
	}
	if cfg.MaxWaiting < 0 {
		return cfg, errors.New("MaxWaiting is negative")
	}
	if cfg.Conn.MaxInFlight < 0 || cfg.Conn.MaxInFlightBytes < 0 {
		return cfg, errors.New("MaxInFlight or MaxInFlightBytes is negative")
	}
	if cfg.MaxWaiting == 0 {
		cfg.MaxWaiting = 64 << 10
	}
	if n := len(cfg.Nodes); n%2 == 0 && cfg.Logger != nil {
		cfg.Logger.Warn("redlock: an even number of nodes tolerates no more failures than one less", "nodes", n, "quorum", quorum.Size(n))
	}
	return cfg, nil
}

// Redact returns nodes as they may be shown: without credentials, and nothing
// at all of what cannot be read, for any part of it may be a password.
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
