// Package e2e has the black-box tests of the client: against fake masters whose faults are switched
// on and off, and against real servers of each kind on this machine (TestReal…).
package e2e

import (
	"testing"

	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// ttl is the TTL of locks that last for a whole test.
const ttl = cluster.TTL

func TestMain(m *testing.M) { cluster.Main(m) }
