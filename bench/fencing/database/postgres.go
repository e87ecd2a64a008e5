package database

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// ErrNoServer means that PostgreSQL is not installed.
var ErrNoServer = errors.New("database: no PostgreSQL server is installed: initdb is neither on PATH nor in /usr/lib/postgresql")

// patience bounds how long the server may take to start and to end.
const patience = time.Minute

// startPostgres starts a server in a directory of its own, which listens on a Unix socket
// there, so that it disturbs no other.
func startPostgres() (d Database, stop func() error, err error) {
	programs, err := findPostgres()
	if err != nil {
		return Database{}, nil, err
	}
	dir, err := os.MkdirTemp("", "fencing-")
	if err != nil {
		return Database{}, nil, err
	}
	remove := func() error { return os.RemoveAll(dir) }
	as, err := unprivileged(dir)
	if err != nil {
		return Database{}, nil, errors.Join(err, remove())
	}
	data := filepath.Join(dir, "data")
	create := exec.Command(filepath.Join(programs, "initdb"), "-D", data, "-U", "example", "-A", "trust", "--no-sync")
	create.Dir, create.SysProcAttr = dir, as
	if said, err := create.CombinedOutput(); err != nil {
		return Database{}, nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, said), remove())
	}
	var said bytes.Buffer
	server := exec.Command(filepath.Join(programs, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=")
	server.Dir, server.SysProcAttr, server.Stderr = dir, as, &said
	if err := server.Start(); err != nil {
		return Database{}, nil, errors.Join(err, remove())
	}
	stop = func() error {
		_ = server.Process.Signal(syscall.SIGINT) // ends connections, and then itself
		late := time.AfterFunc(patience, func() { _ = server.Process.Kill() })
		defer late.Stop()
		return errors.Join(server.Wait(), remove())
	}
	d = Database{"pgx", "host=" + dir + " user=example dbname=postgres"}
	if err := d.await(); err != nil {
		return Database{}, nil, errors.Join(err, stop(), fmt.Errorf("postgres: %s", said.Bytes()))
	}
	return d, stop, nil
}

// await returns when the server answers.
func (d Database) await() error {
	db, err := d.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := db.PingContext(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// findPostgres returns the directory of the programs: that of PATH, or else of the
// newest version that a package has installed.
func findPostgres() (dir string, err error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if initdb, err = filepath.EvalSymlinks(initdb); err == nil {
			return filepath.Dir(initdb), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", ErrNoServer
	}
	newest := slices.MaxFunc(found, func(a, b string) int { // 9 comes before 15
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return bytes.Compare([]byte(a), []byte(b))
	})
	return filepath.Dir(newest), nil
}
