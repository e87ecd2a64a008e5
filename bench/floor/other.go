//go:build !linux

package floor

import (
	"context"

	"github.com/redlock-go/redlock/bench/harness"
)

// open fails: the system calls of the floor are those of Linux.
func open(context.Context, harness.Config, *plan, Driver) (harness.Session, error) {
	return nil, harness.Unsupported("only on Linux")
}
