package realredis

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// The environment variables that name the servers, each a program with its
// first arguments, and whether tests may do without any.
const (
	EnvServer  = "REDLOCK_REDIS_SERVER"
	EnvValkey9 = "REDLOCK_VALKEY9_SERVER"
	EnvRedis8  = "REDLOCK_REDIS8_SERVER"
	EnvRequire = "REDLOCK_REQUIRE_SERVERS"
)

// ErrNoServer means that there is no server to start on this machine, or none
// of the kind that was asked for.
var ErrNoServer = errors.New("realredis: no server")

// errNoKind is an ErrNoServer that is no failure even where servers are
// required: not every machine has every kind.
var errNoKind = fmt.Errorf("%w of this kind", ErrNoServer)

// Kind is a kind of server.
type Kind uint8

const (
	// Usual is the server that the machine has, of any kind: the one that
	// EnvServer names, or else redis-server or valkey-server from PATH.
	Usual Kind = iota
	// Valkey9 is the server that EnvValkey9 names.
	Valkey9
	// Redis8 is the server that EnvRedis8 names.
	Redis8
)

var kinds = [...]struct{ name, env string }{
	Usual:   {"usual", EnvServer},
	Valkey9: {"Valkey 9", EnvValkey9},
	Redis8:  {"Redis 8", EnvRedis8},
}

// Kinds lists all kinds, those that this machine lacks too: Start skips a test
// that asks for one of them.
func Kinds() []Kind { return []Kind{Usual, Valkey9, Redis8} }

// String names the kind.
func (k Kind) String() string { return kinds[k].name }

// Command returns the program that a server of this kind is started with, and
// its first arguments, or an ErrNoServer.
func (k Kind) Command() ([]string, error) {
	if words := strings.Fields(os.Getenv(kinds[k].env)); len(words) > 0 {
		return words, nil
	}
	if k != Usual {
		return nil, fmt.Errorf("%w: %s is not set", errNoKind, kinds[k].env)
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return []string{path}, nil
		}
	}
	return nil, fmt.Errorf("%w: neither redis-server nor valkey-server is on PATH (%s may name another)", ErrNoServer, EnvServer)
}
