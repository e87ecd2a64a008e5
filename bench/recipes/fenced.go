package recipes

import (
	"context"
	"database/sql"
	"errors"

	"github.com/redlock-go/redlock"
)

// ErrLate is the error of a holder that writes after a later one has written.
var ErrLate = errors.New("a later holder of the lock has written")

// SetState writes a row of orders(id, state, fence) in PostgreSQL or SQLite, under a lock of a Fenced client. The
// row remembers the largest token, so a holder that stood still beyond its validity cannot write. Call it
// in client.Do(ctx, "orders:42", …): the token is in the context. New nodes need client.InitFencing, once.
func SetState(ctx context.Context, db *sql.DB, id int64, state string) error {
	fence, ok := redlock.FenceFrom(ctx)
	if !ok {
		return errors.New("no fenced lock in the context")
	}
	result, err := db.ExecContext(ctx, "UPDATE orders SET state = $1, fence = $2 WHERE id = $3 AND fence <= $2", state, int64(fence), id)
	if err != nil {
		return err
	}
	if rows, err := result.RowsAffected(); err != nil || rows == 0 {
		return errors.Join(ErrLate, err)
	}
	return nil
}
