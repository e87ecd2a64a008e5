package recipes

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// TestPasswordFile: a node that has the new password already is reached as soon as the file has it.
func TestPasswordFile(t *testing.T) {
	var nodes []string
	for _, password := range []string{"old", "old", "new"} {
		server, err := fakeredis.Start(fakeredis.Options{User: "locks", Password: password})
		require.NoError(t, err)
		defer server.Close()
		nodes = append(nodes, server.Addr())
	}
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("old\n"), 0o600))
	client := connect(t, redlock.Config{Nodes: nodes, Credentials: PasswordFile("locks", file), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, client.Ready(bounded(t)))
	require.False(t, client.Stats().Nodes[2].Up)
	require.NoError(t, os.WriteFile(file, []byte("new\n"), 0o600))
	require.NoError(t, client.ReadyAll(bounded(t)), "connections that are open stay so")
}
