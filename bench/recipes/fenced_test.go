package recipes

import (
	"context"
	"database/sql"
	"os"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn/conntest"
)

// TestSetState: a holder whose lock has gone to another cannot write after that one.
func TestSetState(t *testing.T) {
	client := connect(t, redlock.Config{Nodes: conntest.Start(t, 3).Addrs(), Fenced: true, MaxTTL: 2 * time.Second})
	require.NoError(t, client.InitFencing(t.Context()))
	for name, open := range map[string]func(t *testing.T) (*sql.DB, error){
		"sqlite": func(t *testing.T) (*sql.DB, error) { return sql.Open("sqlite", "file:"+t.TempDir()+"/shop") },
		"postgres": func(t *testing.T) (*sql.DB, error) {
			url := os.Getenv("REDLOCK_POSTGRES_URL")
			if url == "" {
				t.Skip("REDLOCK_POSTGRES_URL names no server")
			}
			return sql.Open("pgx", url)
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := open(t)
			require.NoError(t, err)
			defer db.Close()
			db.SetMaxOpenConns(1) // for the temporary table
			_, err = db.Exec("CREATE TEMPORARY TABLE orders (id BIGINT PRIMARY KEY, state TEXT, fence BIGINT)")
			require.NoError(t, err)
			_, err = db.Exec("INSERT INTO orders VALUES (42, 'new', 0)")
			require.NoError(t, err)

			var late context.Context
			key := "orders:42:" + name
			write := func(state string) func(context.Context) error {
				return func(ctx context.Context) error {
					late = context.WithoutCancel(ctx) // of one who does not look at its end
					return SetState(ctx, db, 42, state)
				}
			}
			require.NoError(t, client.Do(t.Context(), key, 2*time.Second, write("paid")))
			paused := late
			require.NoError(t, client.Do(t.Context(), key, 2*time.Second, write("sent")))
			require.ErrorIs(t, SetState(paused, db, 42, "paid"), ErrLate)
			var state string
			require.NoError(t, db.QueryRow("SELECT state FROM orders WHERE id = 42").Scan(&state))
			require.Equal(t, "sent", state)
		})
	}
	require.Error(t, SetState(t.Context(), nil, 42, "paid"), "no lock")
}
