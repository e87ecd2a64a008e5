package conn

import (
	"context"
	"errors"
	"net"
	"net/netip"
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

// byName gives a fleet's only node a name of several addresses, the last of which is its server's. reach dials the others,
// and dialed is called for each.
func byName(p *scripted.Server, others int, dialed func(addr string), reach func(context.Context) (net.Conn, error)) func(*Config) {
	_, port, _ := net.SplitHostPort(p.Addr)
	return func(cfg *Config) {
		cfg.Addresses[0].Host = "db.example:" + port
		knobs.OfConn(cfg).Lookup = func(_ context.Context, _, host string) (all []netip.Addr, err error) {
			if host != "db.example" {
				return nil, errors.New("another name: " + host)
			}
			for i := range others {
				all = append(all, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
			}
			return append(all, netip.MustParseAddr("127.0.0.1")), nil
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

// TestAddressesOfAName: one that is no server's does not keep the node from the next, which is tried as soon as it has failed.
func TestAddressesOfAName(t *testing.T) {
	for name, c := range map[string]struct {
		others int
		reach  func(context.Context) (net.Conn, error)
	}{
		"refused":        {maxAddresses - 1, func(context.Context) (net.Conn, error) { return nil, errno.ConnRefused }},
		"takes no bytes": {1, func(context.Context) (net.Conn, error) { ours, _ := net.Pipe(); return ours, nil }},
		"hangs up": {maxAddresses - 1, func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			return ours, theirs.Close()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := scripted.New(t)
			began := time.Now()
			r := newTestFleet(t, true, []*scripted.Server{p}, byName(p, c.others, func(string) {}, c.reach))
			r.AwaitFirst(nil, nil)
			require.Less(t, time.Since(began), (maxAddresses-1)*addressDelay, "not one each 250 ms")
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
	r := newTestFleet(t, true, []*scripted.Server{p}, byName(p, 1, func(addr string) {
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
	refused := &try{host: "a:1", err: errno.ConnRefused}
	require.Equal(t, refused.err, errorOf([]*try{refused, {host: "b:1", err: errno.ConnRefused}}))
	err := errorOf([]*try{refused, {host: "b:1", err: syscall.EHOSTUNREACH}})
	require.ErrorIs(t, err, errno.ConnRefused)
	require.ErrorIs(t, err, syscall.EHOSTUNREACH)
	require.EqualError(t, err, "a:1 "+errno.ConnRefused.Error()+", b:1 "+syscall.EHOSTUNREACH.Error())
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
