package recipes

import (
	"context"
	"database/sql"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
)

// TestMigrationLocker: of two processes that migrate a database at once one does it.
func TestMigrationLocker(t *testing.T) {
	clients, _ := instances(t, 2)
	source := "file:" + t.TempDir() + "/shop?_pragma=busy_timeout(5000)"
	files := fstest.MapFS{"1_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id INTEGER);\n")}}
	type result struct {
		made []*goose.MigrationResult
		err  error
	}
	results := make(chan result)
	for _, client := range clients {
		db, err := sql.Open("sqlite", source)
		require.NoError(t, err)
		defer db.Close()
		provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithLocker(&MigrationLocker{Client: client, Key: "migrate:shop"}))
		require.NoError(t, err)
		go func() {
			made, err := provider.Up(context.Background())
			results <- result{made, err}
		}()
	}
	made := 0
	for range clients {
		r := <-results
		require.NoError(t, r.err)
		made += len(r.made)
	}
	require.Equal(t, 1, made)
}
