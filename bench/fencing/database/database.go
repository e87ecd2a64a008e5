// Package database opens the example's database: SQLite in a file, a PostgreSQL server
// that it starts, or one that runs.
package database

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"
)

// Database says how any process opens it.
type Database struct{ Driver, Source string }

// Start makes an empty database of a kind: "sqlite", "postgres", or the URL of a
// PostgreSQL server. stop ends it and removes what was made.
func Start(kind string) (d Database, stop func() error, err error) {
	switch {
	case kind == "sqlite":
		dir, err := os.MkdirTemp("", "fencing-")
		if err != nil {
			return Database{}, nil, err
		}
		source := "file:" + filepath.Join(dir, "accounts") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)"
		return Database{"sqlite", source}, func() error { return os.RemoveAll(dir) }, nil
	case kind == "postgres":
		return startPostgres()
	case strings.HasPrefix(kind, "postgres://"), strings.HasPrefix(kind, "postgresql://"):
		return Database{"pgx", kind}, func() error { return nil }, nil
	}
	return Database{}, nil, errors.New(`the database is "sqlite", "postgres", or a postgres:// URL`)
}

// Open opens it.
func (d Database) Open() (*sql.DB, error) { return sql.Open(d.Driver, d.Source) }
