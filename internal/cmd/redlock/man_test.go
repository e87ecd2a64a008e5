package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestMan: the page has each command and, once, each setting of all clients, and mandoc has nothing to complain about.
func TestMan(t *testing.T) {
	page := expect(t, cluster.Start(t, 1), exitOK, "man")
	for _, sub := range subcommands {
		require.Contains(t, page, "\n.Ss "+sub.name+": ")
	}
	for _, row := range table {
		item := "\n.It Fl " + row.name
		require.Contains(t, page, item)
		if row.of == forClients {
			require.Equal(t, 1, strings.Count(page, item+"\n")+strings.Count(page, item+" "), item)
		}
	}
	require.Contains(t, page, "REDLOCK_MAX_TTL")
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("mandoc is not here")
	}
	lint := exec.Command(mandoc, "-T", "lint", "-W", "style,stop")
	lint.Stdin = strings.NewReader(page)
	out, err := lint.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "<stdin>")
}
