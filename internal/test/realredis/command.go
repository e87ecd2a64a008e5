package realredis

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Environment variables: the servers, each a program with its first arguments, and whether tests
// may do without any.
const (
	EnvServer  = "REDLOCK_REDIS_SERVER"
	EnvValkey9 = "REDLOCK_VALKEY9_SERVER"
	EnvRedis8  = "REDLOCK_REDIS8_SERVER"
	EnvRequire = "REDLOCK_REQUIRE_SERVERS"
)

// ErrNoServer means that this machine has no server to start, or none of the requested kind.
var ErrNoServer = errors.New("realredis: no server")

// errNoKind is an ErrNoServer, and no failure even where servers are required: not every machine
// has every kind.
var errNoKind = fmt.Errorf("%w of this kind", ErrNoServer)

// Kind is a kind of server.
type Kind uint8

const (
	// Usual is the machine's server, of any kind: EnvServer's, or else redis-server or
	// valkey-server from PATH.
	Usual Kind = iota
	// Valkey9 is the server of EnvValkey9.
	Valkey9
	// Redis8 is the server of EnvRedis8.
	Redis8
)

var kinds = [...]struct{ name, env string }{
	Usual:   {"usual", EnvServer},
	Valkey9: {"Valkey 9", EnvValkey9},
	Redis8:  {"Redis 8", EnvRedis8},
}

// Kinds lists all kinds, those missing on this machine too: Start skips a test without its server.
func Kinds() []Kind { return []Kind{Usual, Valkey9, Redis8} }

// String names the kind.
func (k Kind) String() string { return kinds[k].name }

// Command returns the program of a server of this kind, and its first arguments, or an ErrNoServer.
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
