package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// formTTL is the TTL of fenced locks of TestRealForms, and the MaxTTL of their clients, whose InitFencing takes as long.
func formTTL() time.Duration {
	if testkit.Long() {
		return 40 * time.Second
	}
	return 6 * time.Second
}

// formLock is a held lock of some form.
type formLock interface {
	Extend(ctx context.Context, ttl time.Duration) error
	Release(ctx context.Context) error
}

// lockForm is a form of a lock: of its client, and of the call that acquires it, once.
type lockForm struct {
	name    string
	config  func(c *redlock.Config, servers []*faultyServer)
	acquire func(c *redlock.Client, ctx context.Context, key string, ttl time.Duration) (redlock.Lock, error)
	keys    int  // beside key, with a number behind it
	fenced  bool // its client is
	shared  bool // another may have the key, too
	serves  bool // it is one of a front end
	moves   bool // it is at the fourth server, too
}

func usual(*redlock.Config, []*faultyServer) {}

func fencedForm(c *redlock.Config, _ []*faultyServer) {
	c.Fenced, c.MaxTTL, knobs.Of(c).TrustRestarts = true, formTTL(), true
}

// ttl is that of its locks.
func (f *lockForm) ttl() time.Duration {
	if f.fenced {
		return formTTL()
	}
	return ttl
}

var exclusively, sharing = (*redlock.Client).TryAcquire, (*redlock.Client).TryAcquireShared

// lockForms are the columns of the table.
var lockForms = []lockForm{
	{name: "plain", config: usual, acquire: exclusively},
	{name: "scripted", config: func(c *redlock.Config, _ []*faultyServer) { knobs.Of(c).Scripted = true }, acquire: exclusively},
	{name: "fenced", config: fencedForm, acquire: exclusively, fenced: true},
	{name: "shared", config: usual, acquire: sharing, shared: true},
	{name: "fenced shared", config: fencedForm, acquire: sharing, fenced: true, shared: true},
	{name: "set", config: usual, keys: 2, acquire: func(c *redlock.Client, ctx context.Context, key string, ttl time.Duration) (redlock.Lock, error) {
		return c.TryAcquireAll(ctx, ttl, key, key+"1", key+"2")
	}},
	{name: "any", config: usual, acquire: func(c *redlock.Client, ctx context.Context, key string, ttl time.Duration) (redlock.Lock, error) {
		return c.TryAcquireAny(ctx, ttl, key)
	}},
	{name: "moving", moves: true, acquire: exclusively, config: func(c *redlock.Config, servers []*faultyServer) {
		c.NextNodes = []string{c.Nodes[0], c.Nodes[1], servers[3].Node}
	}},
	{name: "serve", config: usual, acquire: exclusively, serves: true},
}

// formClient is a client for locks of a form, and the front end before it.
type formClient struct {
	*lockForm
	*redlock.Client
	front *testkit.TextClient
}

// connect makes a client for the first three servers.
func (f *lockForm) connect(t *testing.T, x *formTable, nodes []string) *formClient {
	c := &formClient{lockForm: f, Client: cluster.Connect(t, nodes, func(cfg *redlock.Config) {
		knobs.Of(cfg).TrustRestarts = !x.forgets || !x.doubted // else what a server may have forgotten is not the fault
		f.config(cfg, x.servers)
	})}
	if !f.serves {
		return c
	}
	server := frontend.New(frontend.Config{Client: c.Client, MaxTTL: redlock.MaxTTL})
	l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		testkit.Within(t, 2*testkit.Patience, "Stop", func() { server.Stop(t.Context()) })
		require.NoError(t, testkit.Get(t, served))
	})
	c.front = testkit.DialText(t, l.Addr().String())
	return c
}

// try acquires a lock, in one attempt.
func (c *formClient) try(t *testing.T, key string) (formLock, error) {
	if !c.serves {
		return c.acquire(c.Client, t.Context(), key, c.ttl())
	}
	l := &servedLock{c.front, key, fmt.Sprint("token ", time.Now().UnixNano())}
	return l, l.do("+OK", redlock.ErrTaken, "SET", key, l.token, "NX", "PX", fmt.Sprint(c.ttl().Milliseconds()))
}

// names are the keys of a lock.
func (f *lockForm) names(key string) string {
	names := key
	for i := range f.keys {
		names += fmt.Sprint(" ", key, i+1)
	}
	return names
}

// servedLock is the lock of a client of a front end.
type servedLock struct {
	front      *testkit.TextClient
	key, token string
}

// do sends a command, of which one answer means success, and null or 0 another error.
func (l *servedLock) do(success string, denied error, words ...string) error {
	switch reply := l.front.DoWords(words...); {
	case reply == success:
		return nil
	case reply == "nil", reply == ":0":
		return denied
	default:
		return fmt.Errorf("%w (%s)", redlock.ErrNoQuorum, reply)
	}
}

func (l *servedLock) Extend(_ context.Context, ttl time.Duration) error {
	const script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end"
	return l.do(":1", redlock.ErrNotHeld, "EVAL", script, "1", l.key, l.token, fmt.Sprint(ttl.Milliseconds()))
}

func (l *servedLock) Release(context.Context) error {
	const script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
	return l.do(":1", redlock.ErrNotHeld, "EVAL", script, "1", l.key, l.token)
}

// TestRealForms is the table of promises: what OPERATORS.md says of faulty servers holds for each form of a lock, where
// one, two and three of three are faulty. One costs nothing. More cost what the fault says: acquires, extends or releases
// fail, and name no holder; a failed extension ends no validity. Keys lost by one server are set again. Once the servers
// are well all that was owed is done: no key is left, and what was held is extended.
//
// Where time is short two servers are faulty, and the forms with fencing are left out, except for two of the faults.
func TestRealForms(t *testing.T) {
	t.Parallel()
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		for name, s := range serverFaults {
			forms, counts := lockForms, []int{1, 2, 3}
			isWhole := testkit.Long() || kind == realredis.Usual && (name == "OOM" || name == "NOREPLICAS")
			if !isWhole {
				forms = slices.DeleteFunc(slices.Clone(forms), func(f lockForm) bool { return f.fenced }) // InitFencing takes long
				counts = []int{2}
			}
			if s.basic {
				forms = lockForms[:2]
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s.options.Kind = kind
				s.options.Users = append([]string{cluster.AdminUser}, s.options.Users...)
				var table *formTable
				for _, faulty := range counts {
					if table == nil || s.doubted { // quarantines last for long
						table = startTable(t, s, forms)
					}
					t.Run(fmt.Sprint(faulty, " of 3"), func(t *testing.T) { table.row(t, faulty) })
				}
			})
		}
	})
}

// formTable is servers, and clients of each form.
type formTable struct {
	*testing.T
	serverFault
	servers []*faultyServer // the fourth is never faulty
	clients []*formClient
}

func startTable(t *testing.T, s serverFault, forms []lockForm) *formTable {
	x := &formTable{T: t, serverFault: s}
	host := "127.0.0.1"
	if s.outside {
		host = outsideAddress(t)
		s.options.Args = append([]string{"--bind", "127.0.0.1", host}, s.options.Args...)
	}
	var nodes []string
	for _, server := range realredis.StartN(t, 4, s.options) {
		_, port, err := net.SplitHostPort(server.Addr())
		require.NoError(t, err)
		p := &faultyServer{server, cluster.NewAdmin(t, server), "redis://" + s.login + net.JoinHostPort(host, port)}
		x.servers, nodes = append(x.servers, p), append(nodes, p.Node)
	}
	for i := range forms {
		x.clients = append(x.clients, forms[i].connect(t, x, nodes[:3]))
	}
	if i := slices.IndexFunc(x.clients, func(c *formClient) bool { return c.fenced }); i >= 0 {
		require.NoError(t, x.clients[i].InitFencing(t.Context()))
	}
	for _, c := range x.clients {
		require.NoError(t, testkit.Try(t, c.name, func() error { return c.ReadyAll(t.Context()) }))
	}
	return x
}

// everywhere acquires a lock at each server: one that does not know a script yet is late, and not asked again.
func (x *formTable) everywhere(t *testing.T, c *formClient, key string) (l formLock) {
	nodes := x.servers[:3]
	if c.moves {
		nodes = append(nodes[:2:2], x.servers[3]) // a majority of each list may do
	}
	testkit.Await(t, c.name+" at each server", func() bool {
		l = testkit.Must(c.try(t, key))(t)
		for range 20 {
			if !slices.ContainsFunc(nodes, func(p *faultyServer) bool { return !x.has(p, c.lockForm, key) }) {
				return true
			}
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, l.Release(t.Context()))
		return false
	})
	return l
}

// row plays all forms.
func (x *formTable) row(t *testing.T, faulty int) {
	type cell struct {
		*formClient
		held, lost formLock
		key        string
	}
	var cells []*cell
	for i, c := range x.clients {
		w := &cell{formClient: c, key: fmt.Sprint("form", i, "of", faulty)}
		w.held, w.lost = x.everywhere(t, c, w.key+"held"), x.everywhere(t, c, w.key+"lost")
		cells = append(cells, w)
	}
	for _, p := range x.servers[:faulty] {
		x.inject(x.T, p)
	}
	for _, w := range cells {
		t.Run(w.name, func(t *testing.T) {
			is := func(want outcome, what string, err error) {
				t.Helper()
				var q *redlock.QuorumError
				switch held := what == "extend" || what == "release"; {
				case want == either && err == nil:
				case faulty == 1 || want == works:
					require.NoError(t, err, what)
				case x.doubted && w.serves && what == "release" && err == nil: // a second try finds no lock: the first, without a quorum, may have released it
				case x.forgets && held:
					require.True(t, errors.Is(err, redlock.ErrNotHeld) || x.doubted && errors.Is(err, redlock.ErrNoQuorum), "%s: %v", what, err)
				default:
					forgotten := x.doubted && w.fenced && errors.Is(err, redlock.ErrForgotten)
					require.True(t, errors.Is(err, redlock.ErrNoQuorum) || forgotten, "%s: %v", what, err)
					require.NotErrorIs(t, err, redlock.ErrTaken, what)
					require.NotContains(t, fmt.Sprintf("%+v", err), realPassword)
					require.True(t, x.code == "" || !errors.As(err, &q) || strings.Contains(q.Error(), x.code), "%s: %v", what, err)
				}
			}
			acquires := func(what, key string) {
				l, err := w.try(t, key)
				is(x.acquires, what, err)
				if err == nil {
					err = l.Release(t.Context())
					require.True(t, err == nil || x.keeps && faulty > 1, err)
				}
			}
			is(x.extends, "extend", w.held.Extend(t.Context(), w.ttl()))
			if x.forgets && faulty == 1 && !(x.doubted && w.fenced) { // without its vote a fenced node shows no key
				testkit.Await(t, "the repair", func() bool { // by the first extend that the server has answered
					require.NoError(t, w.held.Extend(t.Context(), w.ttl()))
					return x.has(x.servers[0], w.lockForm, w.key+"held")
				})
			}
			acquires("acquire", w.key+"new")
			if w.shared {
				acquires("another holder", w.key+"held")
			}
			is(x.releases, "release", w.lost.Release(t.Context()))
		})
	}
	if x.forgets && x.doubted {
		return
	}
	cells = slices.DeleteFunc(cells, func(w *cell) bool { return x.doubted && w.fenced })
	for i := faulty - 1; i >= 0 && x.heal != nil; i-- {
		x.heal(x.T, x.servers[i])
		if i == 1 {
			for _, w := range cells { // the first is still faulty
				l := testkit.Must(w.Acquire(testkit.Limited(t, 10*time.Second), "healed", w.ttl()))(t)
				require.NoError(t, l.Extend(t.Context(), w.ttl()))
				require.NoError(t, l.Release(t.Context()))
			}
		}
	}
	for _, w := range cells {
		t.Run(w.name+" healed", func(t *testing.T) {
			require.NoError(t, testkit.Try(t, "ReadyAll", func() error { return w.ReadyAll(t.Context()) }))
			if faulty == 1 || !x.forgets {
				require.NoError(t, w.held.Extend(t.Context(), w.ttl()))
				require.NoError(t, w.held.Release(t.Context()))
			} else {
				_ = w.held.Release(t.Context()) // one server has its key
			}
			if x.keeps || w.serves && x.forgets && faulty == 2 {
				return // a front end keeps nothing of a lost lock: the key at one server ends by itself
			}
			for _, p := range x.servers {
				names := strings.Join([]string{w.names(w.key + "held"), w.names(w.key + "lost"), w.names(w.key + "new")}, " ")
				testkit.AwaitFor(t, 3*time.Second, "what is owed", func() bool { return p.Do("EXISTS "+names) == ":0" })
			}
		})
	}
}

// has reports whether a server has all keys of a lock.
func (x *formTable) has(p *faultyServer, f *lockForm, key string) bool {
	return p.Do("EXISTS "+f.names(key)) == fmt.Sprint(":", 1+f.keys)
}
