package recipes

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn/conntest"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// instances are clients of the same masters, as those of several processes.
func instances(t *testing.T, n int) ([]*redlock.Client, *conntest.Masters) {
	masters := conntest.Start(t, 3)
	var clients []*redlock.Client
	for range n {
		clients = append(clients, connect(t, redlock.Config{Nodes: masters.Addrs()}))
	}
	return clients, masters
}

func connect(t *testing.T, cfg redlock.Config) *redlock.Client {
	cfg.NodeTimeout, cfg.StallTimeout = time.Minute, time.Minute
	client, err := redlock.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// bounded is the context of a test that would else hang.
func bounded(t *testing.T) context.Context { return testkit.Limited(t, time.Minute) }
