package recipes

import (
	"context"
	"database/sql"
	"time"

	"github.com/redlock-go/redlock"
)

// MigrationLocker has one process at a time migrate a database with goose, also one without advisory locks:
// goose.NewProvider(dialect, db, files, goose.WithLocker(&MigrationLocker{Client: client, Key: "migrate:shop"})).
type MigrationLocker struct {
	Client *redlock.Client
	Key    string
	lock   redlock.Lock
}

// Lock waits for the lock, and keeps it until Unlock.
func (l *MigrationLocker) Lock(ctx context.Context, _ *sql.DB) (err error) {
	if l.lock, err = l.Client.Acquire(ctx, l.Key, 30*time.Second); err == nil {
		l.lock.KeepAlive(context.WithoutCancel(ctx))
	}
	return err
}

// Unlock releases the lock.
func (l *MigrationLocker) Unlock(ctx context.Context, _ *sql.DB) error { return l.lock.Release(ctx) }
