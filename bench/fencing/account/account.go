// Package account is the resource's half of fencing: rows that refuse a holder whose
// token is not the largest that they have seen. Copy it. It needs one column of the table,
// and of redlock only the number that lock.Fence returns.
//
// Three rules make it work:
//
//   - The check is part of the statement that writes. Between a SELECT that compares and an
//     UPDATE after it a larger token may be written. If one transaction writes several rows,
//     the statement on the guarded row comes first, and a refusal rolls all back.
//   - The row exists before the first lock is taken, with the token 0. Every fence is
//     larger. The Fence of a lock that is not fenced is 0, and is refused.
//   - A holder that reads before it writes calls [Accounts.Enter] first. Otherwise it may
//     read, a holder with a smaller token may write after that, and the newer holder
//     writes a value that was computed from the old one.
package account

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Schema is the table. A token is below 2^53 and fits a BIGINT.
const Schema = `CREATE TABLE IF NOT EXISTS account (id BIGINT PRIMARY KEY, value TEXT NOT NULL, fence BIGINT NOT NULL DEFAULT 0)`

// The statements are the same in SQLite and in PostgreSQL. In both a statement is
// atomic. SQLite has one writer at a time. In PostgreSQL a statement that waited for a row
// that another has changed looks at its condition again, or fails where the transaction is
// isolated more strictly than READ COMMITTED.
//
// Why < and not <=: a token writes once. Everything later with the same token is refused,
// be it another holder that was given the same token by a mistake, or a copy of the
// holder's own statement that was delayed on its way. So < relies on the numbers alone. Its price is that a holder that writes again needs a new lock, and that a
// holder whose write was done while its reply was lost is refused when it repeats it.
//
// With <= a holder writes as often as it likes, and may repeat a write. The price: the row
// no longer orders the writes of one holder. If a statement of its own times out at the
// client and reaches the database late, it overwrites what the holder wrote after it. And
// it relies on what the lock service promises, that no two holders share a token. Where a
// holder's own writes must keep their order too, count them in a column beside the token:
//
//	UPDATE account SET value = $1, fence = $2, write = $3 WHERE id = $4 AND (fence, write) < ($2, $3)
const (
	once  = `UPDATE account SET value = $1, fence = $2 WHERE id = $3 AND fence < $2`
	often = `UPDATE account SET value = $1, fence = $2 WHERE id = $3 AND fence <= $2`
	enter = `UPDATE account SET fence = $1 WHERE id = $2 AND fence < $1 RETURNING value`
	blind = `UPDATE account SET value = $1, fence = $2 WHERE id = $3` // what goes wrong
)

// ErrStale means that a holder with a larger token was there, or one with the same where
// a token writes once. The row is as it was. The lock is lost: to go on is to
// acquire it anew and begin from the start.
var ErrStale = errors.New("account: the token is stale")

// Accounts are the rows of a database.
type Accounts struct{ DB *sql.DB }

// Create makes the table, and a row, unless they are there.
func (a Accounts) Create(ctx context.Context, id int64, value string) error {
	if _, err := a.DB.ExecContext(ctx, Schema); err != nil {
		return err
	}
	_, err := a.DB.ExecContext(ctx, `INSERT INTO account (id, value) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`, id, value)
	return err
}

// Write writes the one value of a holder.
func (a Accounts) Write(ctx context.Context, id int64, value string, fence uint64) error {
	return a.update(ctx, once, id, value, fence)
}

// WriteAgain writes one of several values of a holder.
func (a Accounts) WriteAgain(ctx context.Context, id int64, value string, fence uint64) error {
	return a.update(ctx, often, id, value, fence)
}

// WriteBlindly writes without the check.
func (a Accounts) WriteBlindly(ctx context.Context, id int64, value string, fence uint64) error {
	return a.update(ctx, blind, id, value, fence)
}

// Enter shuts out all holders before this one and returns the value, which only this one
// may change from here on, by [Accounts.WriteAgain].
func (a Accounts) Enter(ctx context.Context, id int64, fence uint64) (value string, err error) {
	err = a.DB.QueryRowContext(ctx, enter, int64(fence), id).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		err = a.refused(ctx, id, fence)
	}
	return value, err
}

// Read returns a row.
func (a Accounts) Read(ctx context.Context, id int64) (value string, fence uint64, err error) {
	err = a.DB.QueryRowContext(ctx, `SELECT value, fence FROM account WHERE id = $1`, id).Scan(&value, &fence)
	return value, fence, err
}

func (a Accounts) update(ctx context.Context, statement string, id int64, value string, fence uint64) error {
	done, err := a.DB.ExecContext(ctx, statement, value, int64(fence), id)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return a.refused(ctx, id, fence)
}

// refused is the error when no row was changed. It decides nothing: the statement has decided.
func (a Accounts) refused(ctx context.Context, id int64, fence uint64) error {
	_, seen, err := a.Read(ctx, id)
	if err != nil {
		return fmt.Errorf("account %d: %w", id, err)
	}
	return fmt.Errorf("%w: it is %d, the row has seen %d", ErrStale, fence, seen)
}
