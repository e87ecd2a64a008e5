package usage

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/rueidis/rueidislock"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// EtcdLead is Lead of bench/recipes, by etcd.
func EtcdLead(ctx context.Context, client *clientv3.Client, name string, lead func(ctx context.Context) error) error {
	term := func() error {
		session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
		if err != nil {
			return err
		}
		defer session.Close()
		if err := concurrency.NewElection(session, name).Campaign(ctx, "leader"); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(session.Ctx(), cancel)()
		return lead(ctx)
	}
	for {
		err := term()
		if ctx.Err() != nil || client.Ctx().Err() != nil {
			return err
		}
		slog.Info("stepped down", "name", name, "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// RueidisLead is the same by rueidislock.
func RueidisLead(ctx context.Context, locker rueidislock.Locker, name string, lead func(ctx context.Context) error) error {
	for {
		term, release, err := locker.WithContext(ctx, name)
		if err == nil {
			err = lead(term)
			release()
		}
		if ctx.Err() != nil || err == rueidislock.ErrLockerClosed {
			return err
		}
		slog.Info("stepped down", "name", name, "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}
