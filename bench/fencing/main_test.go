package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/bench/fencing/database"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

func TestMain(m *testing.M) {
	child.Serve(holderEnv, hold)
	os.Exit(m.Run())
}

// TestStoppedHolder: real servers, real processes, and the counts of the report.
func TestStoppedHolder(t *testing.T) {
	for _, db := range database.ForTests() {
		var out strings.Builder
		err := run(t.Context(), options{loop: 2, db: db, ttl: time.Second}, &out)
		if errors.Is(err, realredis.ErrNoServer) && os.Getenv(realredis.EnvRequire) != "1" {
			t.Skipf("skipped: %v", err)
		}
		require.NoError(t, err)
		require.Contains(t, out.String(), "2 of 2 stale writes landed\n")
		require.Contains(t, out.String(), "0 of 2 stale writes landed, 2 refused\n")
	}
}
