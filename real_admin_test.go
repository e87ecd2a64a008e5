package redlock_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/realredis"
)

// adminUser is a user of real servers that tests give orders as, whatever they
// do to the user of their clients.
const adminUser = "admin on >4711 ~* &* +@all"

// admin is a connection over which a test gives orders to a real server.
type admin struct {
	t  testing.TB
	nc net.Conn
	r  *bufio.Reader
}

// newAdmin connects to a server as adminUser, if it has that.
func newAdmin(t testing.TB, s *realredis.Server) *admin {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
	a := &admin{t, nc, bufio.NewReader(nc)}
	if reply := a.do("AUTH", "admin", "4711"); !strings.HasPrefix(reply, "-WRONGPASS") {
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

func (a *admin) send(order ...string) {
	a.t.Helper()
	fmt.Fprintf(a.nc, "*%d\r\n", len(order))
	for _, word := range order {
		_, err := fmt.Fprintf(a.nc, "$%d\r\n%s\r\n", len(word), word)
		require.NoError(a.t, err)
	}
}

// do gives an order and returns the answer: the text of a bulk string, and the
// first line of anything else.
func (a *admin) do(order ...string) string {
	a.t.Helper()
	a.send(order...)
	line, err := a.r.ReadString('\n')
	require.NoError(a.t, err, order)
	line = strings.TrimSuffix(line, "\r\n")
	if n, err := strconv.Atoi(line[1:]); line[0] == '$' && err == nil && n >= 0 {
		text := make([]byte, n+2)
		_, err := io.ReadFull(a.r, text)
		require.NoError(a.t, err)
		return string(text[:n])
	}
	return line
}

// must gives orders, each of which is answered with OK.
func (a *admin) must(orders ...string) {
	a.t.Helper()
	for _, order := range orders {
		require.Equal(a.t, "+OK", a.do(strings.Fields(order)...), order)
	}
}

// cut ends the connections of all others.
func (a *admin) cut() {
	a.t.Helper()
	require.Regexp(a.t, `^:\d+$`, a.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
}

// awaitNothing waits until no server has any key.
func awaitNothing(t testing.TB, admins []*admin) {
	t.Helper()
	for i, a := range admins {
		await(t, fmt.Sprintf("no key on server %d", i), func() bool { return a.do("DBSIZE") == ":0" })
	}
}
