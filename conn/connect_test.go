package conn

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/errno"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

// byName gives a fleet's only node a name of two addresses, 192.0.2.1 and that of its server. reach dials the first, and
// dialed is called for each.
func byName(p *scripted.Server, dialed func(addr string), reach func(context.Context) (net.Conn, error)) func(*Config) {
	_, port, _ := net.SplitHostPort(p.Addr)
	return func(cfg *Config) {
		cfg.Addresses[0].Host = "db.example:" + port
		knobs.OfConn(cfg).Lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
			if host != "db.example" {
				return nil, errors.New("another name: " + host)
			}
			return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("127.0.0.1")}, nil
		}
		cfg.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialed(addr)
			if addr == p.Addr {
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
			return reach(ctx)
		}
	}
}

// TestAddressesOfAName: one that fails, or that says nothing, does not keep the node from the next.
func TestAddressesOfAName(t *testing.T) {
	for name, reach := range map[string]func(context.Context) (net.Conn, error){
		"refused":        func(context.Context) (net.Conn, error) { return nil, errno.ConnRefused },
		"silent":         func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
		"takes no bytes": func(context.Context) (net.Conn, error) { ours, _ := net.Pipe(); return ours, nil },
		"hangs up": func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			return ours, theirs.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := scripted.New(t)
			r := newTestFleet(t, true, []*scripted.Server{p}, byName(p, func(string) {}, reach))
			r.AwaitFirst(nil, nil)
			r.do(func() { require.NoError(t, r.Fault(0), "in its first dial") })
			r.up()
			r.works()
		})
	}
}

// TestAnAnswerEndsTheDial: the other addresses are of the same server, and so is its answer.
func TestAnAnswerEndsTheDial(t *testing.T) {
	p := scripted.New(t, answers("HELLO", "-WRONGPASS no\r\n"))
	var mu sync.Mutex
	var all []string
	r := newTestFleet(t, true, []*scripted.Server{p}, byName(p, func(addr string) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, addr)
	}, func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", p.Addr) }), func(cfg *Config) { cfg.permanentPause = time.Hour })
	r.AwaitFirst(nil, nil)
	r.do(func() { require.ErrorIs(t, r.Fault(0), ErrAuth) })
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, all, 1)
}

// TestErrorsOfAddresses: each is named where they differ.
func TestErrorsOfAddresses(t *testing.T) {
	p, refused := scripted.New(t), "connect: "+errno.ConnRefused.Error()
	for why, want := range map[error]string{
		errno.ConnRefused:    refused,
		syscall.EHOSTUNREACH: "192.0.2.1:P " + syscall.EHOSTUNREACH.Error() + ", 127.0.0.1:P " + refused,
	} {
		p.Stop()
		_, port, _ := net.SplitHostPort(p.Addr)
		f := &Fleet{cfg: Config{Addresses: make([]Address, 1)}, ctx: t.Context()}
		byName(p, func(string) {}, func(context.Context) (net.Conn, error) {
			if why == errno.ConnRefused {
				return new(net.Dialer).Dial("tcp", p.Addr)
			}
			return nil, why
		})(&f.cfg)
		f.cfg = f.cfg.withDefaults()
		d := dialer{fleet: f, addr: f.cfg.Addresses[0]}
		d.addr.Network = "tcp"
		_, _, err := d.connect()
		require.ErrorIs(t, err, why)
		text := strings.ReplaceAll(f.causeOf(err).Error(), "connectex:", "connect:") // of Windows
		require.Equal(t, want, strings.ReplaceAll(text, port, "P"))
		f.dials.Wait()
	}
}

func TestFamiliesInTurn(t *testing.T) {
	parse := func(texts ...string) (all []netip.Addr) {
		for _, text := range texts {
			all = append(all, netip.MustParseAddr(text))
		}
		return all
	}
	assert.Equal(t, parse("::1", "10.0.0.1", "::2", "::3"), inTurn(parse("::1", "::2", "::3", "10.0.0.1", "::ffff:10.0.0.1")))
	assert.Equal(t, parse("10.0.0.2", "::1", "10.0.0.1"), inTurn(parse("10.0.0.2", "10.0.0.1", "::1")))
	assert.Empty(t, inTurn(nil))
}

// TestWithinABound: the error of what runs out of time names the bound, no matter what has noticed the end first. Other errors
// say more than the time.
func TestWithinABound(t *testing.T) {
	const bound = 10 * time.Millisecond
	run := func(ctx context.Context, take func(context.Context) error) error {
		left := bound
		return within(ctx, &left, bound, "the connect", take)
	}
	for name, take := range map[string]func(context.Context) error{
		"context":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"deadline": func(ctx context.Context) error { <-ctx.Done(); return &net.OpError{Op: "dial", Err: errTimedOut{}} },
		"closed":   func(ctx context.Context) error { <-ctx.Done(); return net.ErrClosed },
		"before": func(ctx context.Context) error { // package net's timer comes first
			at, _ := ctx.Deadline()
			time.Sleep(time.Until(at))
			return &net.OpError{Op: "dial", Err: errTimedOut{}}
		},
	} {
		require.EqualError(t, run(t.Context(), take), "no answer within 10ms (DialTimeout) to the connect", name)
	}
	require.Equal(t, syscall.ENETUNREACH, run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return syscall.ENETUNREACH }))
	left := testkit.Patience
	require.ErrorContains(t, within(t.Context(), &left, left, "the connect", func(context.Context) error { return errTimedOut{} }), "the kernel's", "it had time left")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, context.Canceled, run(over, func(ctx context.Context) error { time.Sleep(bound); return ctx.Err() }), "the dial is over")
}

// errTimedOut is an error of package net or the kernel.
type errTimedOut struct{}

func (errTimedOut) Error() string   { return "the kernel's time is up" }
func (errTimedOut) Timeout() bool   { return true }
func (errTimedOut) Temporary() bool { return true }

// TestHangUps: the text names what does so, over TLS too.
func TestHangUps(t *testing.T) {
	_, client := testkit.NewIdentity(t)
	for _, secure := range []bool{false, true} {
		p := scripted.New(t, func(p *scripted.Server) { p.ServeRaw = true })
		go func() {
			for w := range p.Greeted {
				_ = w.Close()
			}
		}()
		t.Cleanup(func() { p.Stop(); p.Running.Wait(); close(p.Greeted) })
		r := newTestFleet(t, true, []*scripted.Server{p}, func(cfg *Config) { cfg.Addresses[0].TLS, cfg.TLS = secure, client })
		r.AwaitFirst(nil, nil)
		r.do(func() {
			assert.ErrorContains(t, r.Fault(0), "a published port does without a server behind it")
			assert.Equal(t, !secure, strings.Contains(r.Fault(0).Error(), "rediss://"))
		})
		r.do(r.Close)
	}
}
