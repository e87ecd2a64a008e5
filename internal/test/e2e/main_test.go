// Package e2e has the black-box tests of the client: against fake masters with
// faults that are switched on and off, and against real servers of each kind that
// this machine has (TestReal…).
package e2e

import (
	"testing"

	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// ttl is that of locks which must not end during a test.
const ttl = cluster.TTL

func TestMain(m *testing.M) { cluster.Main(m) }
