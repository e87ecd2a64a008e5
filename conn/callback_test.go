package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

// Secrets that change are asked for at every dial, and win over the address.
func TestCredentialsRotate(t *testing.T) {
	var asked atomic.Int64
	p := scripted.New(t, func(p *scripted.Server) { p.ServeRaw = true })
	r := newTestFleet(t, true, []*scripted.Server{p}, with("stale", "stale", 0), func(cfg *Config) {
		cfg.DialTimeout = time.Hour
		cfg.Credentials = func(ctx context.Context, addr string) (string, string, error) {
			deadline, ok := ctx.Deadline()
			assert.True(t, ok && time.Until(deadline) <= CredentialsTimeout)
			assert.Equal(t, p.Addr, addr)
			return "me", fmt.Sprint(marked, asked.Add(1)), nil
		}
	})
	w := p.Next(t)
	w.Expect(string(encode("AUTH", "me", marked+"1")))
	require.NoError(t, w.Close()) // perhaps at HELLO
	w = p.Next(t)
	w.Expect(string(encode("AUTH", "me", marked+"1"))) // of the same dial
	w.Send("-WRONGPASS " + marked + "\r\n")
	w = p.Next(t)
	w.Expect(string(encode("AUTH", "me", marked+"2")))
	r.do(func() {
		assert.ErrorIs(t, r.Fault(0), ErrAuth)
		assert.NotContains(t, r.Fault(0).Error(), marked)
	})
}

// timeless is a connection without deadlines, as those through an SSH client are.
type timeless struct{ net.Conn }

func (timeless) SetDeadline(time.Time) error { return errors.New("deadlines are not supported") }

// keeper is a connection that keeps what it is given to write.
type keeper struct {
	net.Conn
	kept []byte
}

func (k *keeper) Write(b []byte) (int, error) {
	k.kept = b
	if !strings.Contains(string(b), marked) {
		return 0, errors.New("without the password")
	}
	return 0, net.ErrClosed
}

// The buffer that the password was written from goes back to a pool that the
// whole process uses.
func TestPasswordsAreWipedFromTheBuffer(t *testing.T) {
	k := &keeper{}
	k.Conn, _ = net.Pipe()
	f := &Fleet{cfg: Config{Probes: probeAll}.withDefaults(), ctx: t.Context()}
	err := (&try{dialer: &dialer{fleet: f}, nc: k, login: login{"me", marked}}).greet()
	require.ErrorIs(t, err, net.ErrClosed)
	assert.NotContains(t, string(k.kept), marked)
}

// TestDialerFails: functions of the configuration that fail, and a connection that is closed when its time is up.
func TestDialerFails(t *testing.T) {
	errNoRoute := errors.New("no route")
	silent := func() net.Conn {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = theirs.Close() })
		return ours
	}
	credentials := func(context.Context, string) (string, string, error) { return "me", marked, errNoRoute }
	for name, test := range map[string]struct {
		dial func(context.Context, string, string) (net.Conn, error)
		want error
		text string
	}{
		"with an error":     {func(context.Context, string, string) (net.Conn, error) { return nil, errNoRoute }, errNoRoute, "no route"},
		"without an error":  {func(context.Context, string, string) (net.Conn, error) { return nil, nil }, nil, ""},
		"without deadlines": {func(context.Context, string, string) (net.Conn, error) { return timeless{silent()}, nil }, nil, ""},
		"by Credentials":    {nil, errNoRoute, "credentials: no route"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestFleet(t, false, scripted.NewN(t, 1), func(cfg *Config) {
				cfg.DialTimeout = 20 * time.Millisecond
				if cfg.Dialer = test.dial; test.dial == nil {
					cfg.Credentials = credentials
				}
			})
			testkit.Within(t, testkit.Patience, "AwaitFirst", func() { r.AwaitFirst(nil, nil) })
			r.do(func() { assert.ErrorIs(t, r.Fault(0), ErrNotSent) })
			if test.want != nil { // on a busy machine AwaitFirst is over before the dial
				r.until("the error of the dialer", func() bool { return errors.Is(r.Fault(0), test.want) })
				r.do(func() { assert.ErrorContains(t, r.Fault(0), test.text) })
			}
			r.do(r.Close)
			testkit.Within(t, testkit.Patience, "Drain", r.Drain)
		})
	}
}

// Each node has its own certificates, and those of the next connection may be
// others.
func TestTLSFor(t *testing.T) {
	servers := make([]*tls.Config, 2)
	clients := make([]*tls.Config, 2)
	ps := make([]*scripted.Server, 2)
	for i := range ps {
		servers[i], clients[i] = testkit.NewIdentity(t)
		servers[i].MinVersion = tls.VersionTLS12
		ps[i] = scripted.New(t, func(p *scripted.Server) { p.TLS = servers[i] })
	}
	var mu sync.Mutex
	trusted := map[string]*tls.Config{ps[0].Addr: clients[0]} // the other goes by Config.TLS
	r := newTestFleet(t, false, ps, func(cfg *Config) {
		cfg.TLS = clients[1]
		cfg.TLSFor = func(addr string) *tls.Config {
			mu.Lock()
			defer mu.Unlock()
			return trusted[addr]
		}
	})
	r.up()
	r.works()
	assert.Empty(t, clients[0].ServerName, "it is a copy that is completed")
	assert.Zero(t, clients[0].MinVersion)

	mu.Lock()
	trusted[ps[0].Addr] = clients[1]
	mu.Unlock()
	r.wires[0].Cut()
	r.until("for the wrong certificate", func() bool {
		err := r.Fault(0)
		return err != nil && strings.Contains(err.Error(), "tls")
	})
	mu.Lock()
	trusted[ps[0].Addr] = clients[0]
	mu.Unlock()
	r.wires[0] = nil
	r.until("for the right one", func() bool { return r.Up(0) })
}

func TestTLSIsNeverWeakened(t *testing.T) {
	weak := &tls.Config{MinVersion: tls.VersionTLS10}
	blind := &tls.Config{InsecureSkipVerify: true, ServerName: "elsewhere", MinVersion: tls.VersionTLS13}
	for name, cfg := range map[string]Config{
		"none":     {},
		"TLS":      {TLS: weak},
		"TLSFor":   {TLSFor: func(string) *tls.Config { return weak }},
		"its none": {TLSFor: func(string) *tls.Config { return nil }},
	} {
		got := cfg.tlsFor(Address{Network: "tcp", Host: "h.example:1"})
		assert.EqualValues(t, tls.VersionTLS12, got.MinVersion, name)
		assert.Equal(t, "h.example", got.ServerName, name)
		assert.False(t, got.InsecureSkipVerify, name)
	}
	got := Config{TLS: weak, TLSFor: func(string) *tls.Config { return blind }}.tlsFor(Address{Host: "h:1"})
	assert.EqualValues(t, tls.VersionTLS13, got.MinVersion)
	assert.Equal(t, "elsewhere", got.ServerName)
	assert.True(t, got.InsecureSkipVerify, "as the user has it")
	assert.EqualValues(t, tls.VersionTLS10, weak.MinVersion, "theirs is left alone")
}

// slowEnd is a connection with calls that take a while to notice that it was closed.
type slowEnd struct {
	net.Conn
	ended *atomic.Int64
}

func (c slowEnd) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		time.Sleep(5 * time.Millisecond) // the end is slow
		c.ended.Add(1)
	}
	return n, err
}

// Behind Close and Drain no Dialer, and no goroutine of a connection, runs any more: at once, not soon. A handshake without
// an answer is not waited for.
func TestCloseWaitsForGoroutines(t *testing.T) {
	connect := func(ctx context.Context, addr string, ended *atomic.Int64) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		return slowEnd{nc, ended}, err
	}
	for name, dial := range map[string]func(ctx context.Context, addr string, ended *atomic.Int64) (net.Conn, error){
		"a Dialer": func(ctx context.Context, _ string, ended *atomic.Int64) (net.Conn, error) {
			<-ctx.Done()
			time.Sleep(5 * time.Millisecond)
			ended.Add(1)
			return nil, ctx.Err()
		},
		"a handshake":  connect,
		"a connection": connect,
	} {
		t.Run(name, func(t *testing.T) {
			var asked, greeted, ended atomic.Int64
			ps := scripted.NewN(t, 3, func(p *scripted.Server) {
				if name == "a handshake" {
					p.Greeting = func(int, string) scripted.Steps { greeted.Add(1); return scripted.Steps{scripted.Mute} }
				}
			})
			r := newTestFleet(t, true, ps, func(cfg *Config) {
				cfg.DialTimeout = time.Hour
				cfg.Dialer = func(ctx context.Context, _, addr string) (net.Conn, error) {
					asked.Add(1)
					return dial(ctx, addr, &ended)
				}
			})
			testkit.Await(t, "all to be dialed", func() bool { return asked.Load() == 3 })
			switch name {
			case "a handshake":
				testkit.Await(t, "all to be greeted", func() bool { return greeted.Load() == 3 })
			case "a connection":
				r.up()
			}
			r.do(r.Close)
			testkit.Within(t, testkit.Patience, "Drain", r.Drain)
			assert.EqualValues(t, 3, ended.Load())
		})
	}
}

// TestCloseOfNodes: it fails what is under way, and waits for all goroutines. Await waits for a majority, and then for others.
func TestCloseOfNodes(t *testing.T) {
	var ended atomic.Int64
	cfg := Config{Probes: probeShortly}
	for _, p := range scripted.NewN(t, 3) { // they never answer
		cfg.Addresses = append(cfg.Addresses, Address{Network: "tcp", Host: p.Addr})
	}
	cfg.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == cfg.Addresses[2].Host {
			time.Sleep(20 * time.Millisecond) // later than the others
		}
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		return slowEnd{nc, &ended}, err
	}
	knobs.OfConn(&cfg).Stragglers = testkit.Patience
	nodes, err := Open(cfg)
	require.NoError(t, err)
	require.NoError(t, nodes.Await(t.Context()))
	nodes.Use(func(f *Fleet) { require.Zero(t, f.Away()) })
	do := func() error {
		closed := 0
		for _, reply := range nodes.Do(t.Context(), encode("PING")) {
			if errors.Is(reply.Err, ErrClosed) {
				closed++
			}
		}
		return fmt.Errorf("%d are closed", closed)
	}
	under := testkit.Start(do)
	testkit.Await(t, "the request", func() (is bool) {
		nodes.Use(func(f *Fleet) { is = f.Node(0).InFlight == 1 })
		return is
	})
	nodes.Close()
	require.EqualValues(t, 3, ended.Load())
	require.EqualError(t, testkit.Outcome(t, "Do", under), "3 are closed")
	require.EqualError(t, do(), "3 are closed")
}
