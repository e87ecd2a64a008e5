package redlock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/realredis"
)

// leastPrivileges is all that the user of a client needs, on the keys that it
// locks. AUTH needs no grant, and INFO is done without.
var leastPrivileges = []string{"+set", "+evalsha", "+script|load", "+mget", "+pexpire", "+del"}

const leastUser = "locker resetchannels resetkeys -@all on >" + realPassword + " ~lock:* "

// TestRealLeastPrivileges: the least that a user can be allowed is enough for
// whatever locks go through, and each part of it is needed.
func TestRealLeastPrivileges(t *testing.T) {
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		servers := realredis.StartN(t, 3, realredis.Options{
			Kind: kind, Users: []string{adminUser, leastUser + strings.Join(leastPrivileges, " ")}})
		admins := newAdmins(t, servers)
		client := func() *redlock.Client {
			var nodes []string
			for _, s := range servers {
				nodes = append(nodes, "redis://"+lockerLogin+s.Addr())
			}
			return newClient(t, nodes)
		}
		require.NoError(t, wholeLife(t, client(), client(), admins))
		_, err := client().TryAcquire(t.Context(), "another's", ttl)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)

		for _, privilege := range leastPrivileges {
			for _, a := range admins {
				a.must("ACL SETUSER locker -" + privilege[1:])
			}
			require.ErrorIs(t, wholeLife(t, client(), client(), admins), redlock.ErrNoQuorum, privilege)
			for _, a := range admins {
				a.must("ACL SETUSER locker "+privilege, "FLUSHALL")
			}
		}
		require.NoError(t, wholeLife(t, client(), client(), admins))
	})
}

// wholeLife has a lock acquired, refused to another, extended and released,
// with the scripts known and forgotten.
func wholeLife(t *testing.T, ours, theirs *redlock.Client, admins []*admin) error {
	for _, forget := range []bool{false, true, false} {
		l, err := ours.TryAcquire(t.Context(), "lock:1", ttl)
		if err != nil {
			return err
		}
		if _, err := theirs.TryAcquire(t.Context(), "lock:1", ttl); err != redlock.ErrTaken {
			return errors.Join(errors.New("not refused"), err)
		}
		if forget {
			for _, a := range admins {
				a.must("SCRIPT FLUSH")
			}
		}
		if err := l.Extend(t.Context(), ttl); err != nil {
			return err
		}
		if forget {
			for _, a := range admins {
				a.must("SCRIPT FLUSH")
			}
		}
		if err := l.Release(t.Context()); err != nil {
			return err
		}
	}
	return nil
}
