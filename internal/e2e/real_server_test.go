package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
)

// adminUser is a user of real servers that tests give orders as, whatever they
// do to the user of their clients.
const adminUser = "admin on >4711 ~* &* +@all"

// admin is a connection over which a test gives orders to a real server.
type admin struct{ *testkit.TextClient }

// newAdmin connects to a server as adminUser, if it has that.
func newAdmin(t testing.TB, s *realredis.Server) *admin {
	t.Helper()
	a := &admin{testkit.DialText(t, s.Addr())}
	if reply := a.Do("AUTH admin 4711"); !strings.HasPrefix(reply, "-WRONGPASS") {
		require.Equal(t, "+OK", reply)
	}
	return a
}

func newAdmins(t testing.TB, servers []*realredis.Server) (admins []*admin) {
	t.Helper()
	for _, s := range servers {
		admins = append(admins, newAdmin(t, s))
	}
	return admins
}

// cut ends the connections of all others.
func (a *admin) cut() { a.Do("CLIENT KILL TYPE normal SKIPME yes") }

// awaitNothing waits until no server has any key.
func awaitNothing(t testing.TB, admins []*admin) {
	t.Helper()
	for i, a := range admins {
		testkit.Await(t, fmt.Sprintf("no key on server %d", i), func() bool { return a.Do("DBSIZE") == ":0" })
	}
}

func realAddrs(servers []*realredis.Server) (addrs []string) {
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// persistentAddrs are those of servers that forget nothing.
func persistentAddrs(servers []*realredis.Server) (addrs []string) {
	for _, addr := range realAddrs(servers) {
		addrs = append(addrs, "redis://"+addr+"?persistent=yes")
	}
	return addrs
}
