package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/testkit"
)

// newPump is a pump on its own, and the other end of it.
func newPump(t *testing.T) (*pump, *pumpPoller, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe() // unbuffered: it blocks at once
	return pumpOn(t, ours, theirs)
}

func pumpOn(t *testing.T, ours, theirs net.Conn) (*pump, *pumpPoller, net.Conn) {
	t.Helper()
	pp := newPumpPoller(1)
	s, err := pp.adopt(ours, 0)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.close(true)
		_ = theirs.Close()
		testkit.Within(t, testkit.Patience, "close", pp.close)
	})
	return s.(*pump), pp, theirs
}

func reported(pp *pumpPoller) bool { return len(pp.poll(0, nil)) > 0 }

func TestPumpTakesWhatItCanHold(t *testing.T) {
	p, pp, theirs := newPump(t)
	data := []byte(strings.Repeat("0123456789abcdef", 1<<16)) // 1 MiB
	sent := 0
	full := func() bool { // also counting what the writer takes out meanwhile
		n, err := p.send(data[sent:])
		require.NoError(t, err)
		sent += n
		return n == 0
	}
	testkit.Await(t, "for the pump to be full", full)
	assert.LessOrEqual(t, sent, 2*pumpBuffer)
	assert.GreaterOrEqual(t, sent, pumpBuffer)
	for reported(pp) {
	}
	got := make([]byte, len(data))
	for n := 0; n < len(got); {
		k, err := theirs.Read(got[n:])
		require.NoError(t, err)
		if n += k; sent < len(data) {
			testkit.Await(t, "for a report of room", func() bool { return reported(pp) || sent > n })
			full()
		}
	}
	assert.Equal(t, string(data), string(got))
}

func TestPumpReadsNoMoreThanItCanHold(t *testing.T) {
	p, pp, theirs := newPump(t)
	data := strings.Repeat("0123456789abcdef", 1<<14)
	wrote := make(chan error, 1)
	go func() {
		_, err := theirs.Write([]byte(data))
		wrote <- err
	}()
	testkit.Await(t, "for the pump to be full", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.in)+readBuffer > pumpBuffer
	})
	var got []byte
	buf := make([]byte, 1000)
	testkit.Await(t, "for all of it", func() bool {
		for range len(data) / len(buf) {
			n, err := p.recv(buf)
			require.NoError(t, err)
			got = append(got, buf[:n]...)
		}
		return len(got) == len(data)
	})
	assert.Equal(t, data, string(got))
	assert.NoError(t, <-wrote)
	assert.True(t, reported(pp))
}

// A write that fails is reported, without another read or write.
func TestPumpReportsAFailedWrite(t *testing.T) {
	p, pp, theirs := newPump(t)
	require.NoError(t, theirs.SetDeadline(time.Unix(1, 0)))
	_ = p.nc.SetWriteDeadline(time.Unix(1, 0))
	_, err := p.send([]byte("x"))
	require.NoError(t, err)
	testkit.Await(t, "for the report", func() bool { return reported(pp) })
	_, err = p.recv(make([]byte, 1))
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// Both goroutines end with close, in every place where they block.
func TestPumpCloses(t *testing.T) {
	for name, block := range map[string]func(p *pump, theirs net.Conn){
		"idle":       func(*pump, net.Conn) {},
		"in a write": func(p *pump, _ net.Conn) { _, _ = p.send(make([]byte, pumpBuffer)) },
		"full of bytes to read": func(p *pump, theirs net.Conn) {
			go func() { _, _ = theirs.Write(make([]byte, 4*pumpBuffer)) }()
			testkit.Await(t, "to fill up", func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return len(p.in)+readBuffer > pumpBuffer
			})
		},
		"by its end": func(p *pump, theirs net.Conn) { _ = theirs.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			p, pp, theirs := newPump(t)
			block(p, theirs)
			p.close(true)
			testkit.Within(t, testkit.Patience, "close", pp.close)
			p.close(false) // harmless
			_, err := p.send([]byte("x"))
			assert.Error(t, err)
			_, err = theirs.Read(make([]byte, 1))
			for err == nil {
				_, err = theirs.Read(make([]byte, 1))
			}
			assert.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe))
		})
	}
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

// Behind Close and Drain no goroutine of a connection runs any more: at once, not
// soon.
func TestCloseWaitsForPumps(t *testing.T) {
	var ended atomic.Int64
	r := newUpFleet(t, true, 3, func(cfg *Config) {
		cfg.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			return slowEnd{nc, &ended}, err
		}
	})
	r.do(r.Close)
	r.Drain()
	assert.EqualValues(t, 3, ended.Load())
}
