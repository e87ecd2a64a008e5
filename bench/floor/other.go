//go:build !linux

package floor

import (
	"context"
	"fmt"

	"github.com/redlock-go/redlock/bench/harness"
)

// open fails: the system calls of the loop are Linux's.
func open(context.Context, harness.Config, *plan, bool) (harness.Session, error) {
	return nil, fmt.Errorf("%w: only on linux", harness.ErrUnsupported)
}
