// Package database opens the database of the example: SQLite in a file, or PostgreSQL.
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

// EnvPostgres names the URL of a PostgreSQL server for tests.
const EnvPostgres = "REDLOCK_POSTGRES_URL"

// Database is what a process needs to open it.
type Database struct{ Driver, Source string }

// New returns the database of a name: "sqlite" is a new file, which remove deletes; other
// names are URLs of PostgreSQL.
func New(name string) (d Database, remove func() error, err error) {
	switch {
	case name == "sqlite":
		dir, err := os.MkdirTemp("", "fencing-")
		source := "file:" + filepath.Join(dir, "accounts") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)"
		return Database{"sqlite", source}, func() error { return os.RemoveAll(dir) }, err
	case strings.HasPrefix(name, "postgres://"), strings.HasPrefix(name, "postgresql://"):
		return Database{"pgx", name}, func() error { return nil }, nil
	}
	return Database{}, nil, errors.New(`the database is "sqlite" or a postgres:// URL`)
}

// ForTests are the databases of this machine.
func ForTests() []string {
	all := []string{"sqlite"}
	if url := os.Getenv(EnvPostgres); url != "" {
		all = append(all, url)
	}
	return all
}

// Open opens it.
func (d Database) Open() (*sql.DB, error) { return sql.Open(d.Driver, d.Source) }
