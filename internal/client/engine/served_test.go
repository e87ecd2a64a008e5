package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/fleet"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// served is an engine with its goroutines, on a fleet of servers in this process.
type served struct {
	*Engine
	servers []*fakeredis.Server
	closed  bool
}

func newServed(t *testing.T, nodes int, portable bool) *served {
	s := &served{servers: fakeredis.StartN(t, nodes)}
	s.Engine = New(Config{Clock: clock.New(), MaxWaiting: 1 << 16, Timeout: time.Minute})
	addresses, err := conn.ParseAddresses(fakeredis.Addrs(s.servers))
	require.NoError(t, err)
	fleet, err := fleet.New(fleet.Config{Addresses: addresses, Portable: portable, OnUp: s.NodeUp, StallTimeout: time.Minute}, s.DriverLock())
	require.NoError(t, err)
	s.Start(fleet)
	fleet.AwaitFirstDials()
	t.Cleanup(func() {
		if !s.closed {
			s.Close(0)
		}
	})
	return s
}

// after is closed after d.
func after(d time.Duration) <-chan struct{} {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	context.AfterFunc(ctx, cancel)
	return ctx.Done()
}

func (s *served) Close(bound time.Duration) {
	s.closed = true
	s.Engine.Close(after(bound))
}

// hang keeps all replies back, until heal.
func (s *served) hang() {
	for _, server := range s.servers {
		server.Hang()
	}
}

func (s *served) heal(t *testing.T) {
	for _, server := range s.servers {
		require.NoError(t, server.Heal())
	}
}

// keys is how many keys the servers have.
func (s *served) keys() (n int) {
	for _, server := range s.servers {
		n += server.Len()
	}
	return n
}

// chanOp is a Completion that sends the operation on.
type chanOp chan *Op

func (c chanOp) Complete(op *Op) { c <- op }

func (c chanOp) acquire(key string) *Op {
	return &Op{Kind: Acquire, Key: []byte(key), TTL: time.Minute, Token: tokenOf(1), Done: c}
}

// await is the next operation that is complete.
func (c chanOp) await(t *testing.T) *Op {
	select {
	case op := <-c:
		return op
	case <-time.After(10 * time.Second):
		require.FailNow(t, "an operation does not end")
		return nil
	}
}
