package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// AdminUser is the user for orders of tests to real servers. They may change the user of their
// clients.
const AdminUser = "admin on >4711 ~* &* +@all"

// Admin is a test's connection for orders to a real server.
type Admin struct{ *testkit.TextClient }

// NewAdmin connects to a server as AdminUser, if it exists.
func NewAdmin(t testing.TB, s *realredis.Server) *Admin {
	t.Helper()
	a := &Admin{testkit.DialText(t, s.Addr())}
	if reply := a.Do("AUTH admin 4711"); !strings.HasPrefix(reply, "-WRONGPASS") {
		require.Equal(t, "+OK", reply)
	}
	return a
}

// Admins holds the connections to several servers.
type Admins []*Admin

// NewAdmins connects to each of some servers.
func NewAdmins(t testing.TB, servers []*realredis.Server) (admins Admins) {
	t.Helper()
	for _, s := range servers {
		admins = append(admins, NewAdmin(t, s))
	}
	return admins
}

// Must gives the same orders to all.
func (l Admins) Must(orders ...string) {
	for _, a := range l {
		a.Must(orders...)
	}
}

// Cut ends the connections of all others.
func (a *Admin) Cut() { a.Do("CLIENT KILL TYPE normal SKIPME yes") }

// AwaitNothing waits until no server has any key.
func AwaitNothing(t testing.TB, admins Admins) {
	t.Helper()
	for i, a := range admins {
		testkit.Await(t, fmt.Sprintf("no key on server %d", i), func() bool { return a.Do("DBSIZE") == ":0" })
	}
}

// RealAddrs are the addresses of servers.
func RealAddrs(servers []*realredis.Server) (addrs []string) {
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}
