package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/fencing/account"
	"github.com/redlock-go/redlock/bench/fencing/database"
)

// holderEnv makes a copy of this program a holder, and contains its setup.
const holderEnv = "REDLOCK_FENCING_HOLDER"

// setup is what the processes have in common.
type setup struct {
	Nodes    []string
	TTL      time.Duration
	Database database.Database
}

// client makes the client of one process. All clients of a fleet name the same nodes and
// the same MaxTTL.
func (s setup) client() (*redlock.Client, error) {
	return redlock.New(redlock.Config{Nodes: s.Nodes, Fenced: true, MaxTTL: maxTTL})
}

// order is one task of a holder.
type order struct {
	ID      int64
	Value   string
	Checked bool
}

// work is what a program does with a lock: it acquires, makes sure that the lock is still
// valid, and writes. paused is called where the process may be stopped: after the last check
// of the clock.
func work(ctx context.Context, client *redlock.Client, ttl time.Duration, rows account.Accounts, o order, paused func(fence uint64) error) error {
	lock, err := client.Acquire(ctx, fmt.Sprint("account:", o.ID), ttl)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release(context.WithoutCancel(ctx)) }() // a lock that was lost is not held
	if lock.Remaining() <= 0 {
		return redlock.ErrExpired
	}
	if err := paused(lock.Fence()); err != nil {
		return err
	}
	if !o.Checked {
		return rows.WriteBlindly(ctx, o.ID, o.Value, lock.Fence())
	}
	return rows.Write(ctx, o.ID, o.Value, lock.Fence())
}

// The answers of a holder to the order to write.
const (
	written = "written"
	refused = "refused"
)

// hold is the process of a holder. It reads an order, acquires, prints its token, reads the
// order to write, and prints the result.
func hold(text string) error {
	var s setup
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	defer client.Close()
	db, err := s.Database.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	fmt.Println("ready")

	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		err := work(context.Background(), client, s.TTL, account.Accounts{DB: db}, o, func(fence uint64) error {
			fmt.Println(fence)
			if !lines.Scan() {
				return errors.New("the program has ended")
			}
			return nil
		})
		switch {
		case err == nil:
			fmt.Println(written)
		case errors.Is(err, account.ErrStale):
			fmt.Println(refused)
		default:
			return err
		}
	}
	return lines.Err()
}
