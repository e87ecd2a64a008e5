package realredis

import (
	"errors"
	"os"
	"os/exec"
	"strings"
)

// The environment variables that say which servers to use, and whether tests
// may do without.
const (
	EnvServer  = "REDLOCK_REDIS_SERVER"
	EnvRequire = "REDLOCK_REQUIRE_SERVERS"
)

// ErrNoServer means that there is no server to start on this machine.
var ErrNoServer = errors.New("realredis: neither redis-server nor valkey-server is on PATH (" + EnvServer + " may name another)")

// Command returns the program that a server is started with, and its first
// arguments.
func Command() ([]string, error) {
	if words := strings.Fields(os.Getenv(EnvServer)); len(words) > 0 {
		return words, nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return []string{path}, nil
		}
	}
	return nil, ErrNoServer
}
