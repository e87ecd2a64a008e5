package conn_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

func TestMain(m *testing.M) { cluster.Main(m) }

var majority = quorum.Majority(quorum.First(5))

// onEachPath runs a test with five masters, all connected: by raw sockets, by package net, and by TLS.
func onEachPath(t *testing.T, test func(t *testing.T, masters fakeredis.Servers, nodes *conn.Nodes)) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		masters := fakeredis.StartN(t, 5)
		test(t, masters, openNodes(t, fakeredis.Addrs(masters), portable))
	})
	t.Run("TLS", func(t *testing.T) {
		server, client := testkit.NewIdentity(t)
		masters := fakeredis.StartN(t, 5, fakeredis.Options{TLS: server})
		addrs := fakeredis.Addrs(masters)
		for i := range addrs {
			addrs[i] = "rediss://" + addrs[i]
		}
		test(t, masters, openNodes(t, addrs, false, func(c *conn.Config) { c.TLS = client }))
	})
}

// openNodes waits for all nodes: Await ends with a majority, and the others would have errors.
func openNodes(t testing.TB, addrs []string, portable bool, change ...func(*conn.Config)) *conn.Nodes {
	all, err := conn.ParseAddresses(addrs)
	require.NoError(t, err)
	cfg := conn.Config{Addresses: all, Portable: portable}
	for _, f := range change {
		f(&cfg)
	}
	nodes, err := conn.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(nodes.Close)
	nodes.Await(t.Context())
	testkit.Await(t, "all nodes up", func() (all bool) {
		nodes.Use(func(f *conn.Fleet) {
			all = true
			for i := range f.Len() {
				all = all && f.Node(i).Up
			}
		})
		return all
	})
	return nodes
}

// TestDo: callers of all kinds at once, on nodes of which two come and go. Each loop has every node once, or ends with
// its break.
func TestDo(t *testing.T) {
	onEachPath(t, func(t *testing.T, masters fakeredis.Servers, nodes *conn.Nodes) {
		var wg sync.WaitGroup
		stop := make(chan struct{})
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
				masters[i%2].Down()
				_ = masters[i%2].Heal()
			}
		})
		var callers sync.WaitGroup
		for range 32 {
			callers.Go(func() {
				for range 300 {
					ctx, cancel := context.WithCancel(t.Context())
					whole, ends := rand.IntN(2) == 0, rand.IntN(8) == 0
					if ends {
						time.AfterFunc(time.Duration(rand.IntN(300))*time.Microsecond, cancel)
					}
					var votes quorum.Tally
					votes.Reset(majority)
					seen := quorum.Set(0)
					command := resp.AppendCommand(nil, "SET", "key", "value")
					for node, reply := range nodes.Do(ctx, command) {
						assert.False(t, seen.Has(node))
						seen.Add(node)
						outcome := quorum.Failed
						if reply.Err == nil && assert.True(t, reply.Value.IsOK(), "%q", reply.Value.Bytes) {
							outcome = quorum.Granted
						} else if !ends {
							assert.False(t, errors.Is(reply.Err, context.Canceled))
						}
						if votes.Record(node, outcome) != quorum.Pending && !whole {
							break
						}
					}
					clear(command) // it was copied
					if whole {
						assert.Equal(t, quorum.First(5), seen)
					}
					if !ends {
						assert.Equal(t, quorum.Won, votes.Verdict())
					}
					cancel()
				}
			})
		}
		callers.Wait()
		close(stop)
		wg.Wait()
	})
}

// TestDoBesideABadNode: with one node that hangs, or answers with something else, a majority decides each exchange; a loop
// over all nodes has the bad one's error, when its ctx ends or the connection does. Nothing is left of either.
func TestDoBesideABadNode(t *testing.T) {
	for name, spoil := range map[string]func(*fakeredis.Server){
		"hangs":  (*fakeredis.Server).Hang,
		"lies":   func(s *fakeredis.Server) { s.WrongReply("SET", "+OK\r\n+OK\r\n", 1<<30) },
		"floods": func(s *fakeredis.Server) { s.WrongReply("SET", "$999999\r\n"+strings.Repeat("x", 20<<10), 1<<30) },
		"ends":   (*fakeredis.Server).Down,
	} {
		onEachPath(t, func(t *testing.T, masters fakeredis.Servers, nodes *conn.Nodes) {
			spoil(masters[1])
			command := resp.AppendCommand(nil, "SET", "key", "value")
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 100 {
						good := 0
						for node, reply := range nodes.Do(t.Context(), command) {
							if node != 1 {
								if assert.NoError(t, reply.Err, name) {
									assert.True(t, reply.Value.IsOK())
								}
								good++
							}
							if good == 3 {
								break
							}
						}
						assert.Equal(t, 3, good, name)
					}
				})
			}
			all.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n, well := 0, 0
			for node, reply := range nodes.Do(ctx, command) {
				assert.True(t, node == 1 || reply.Err == nil, "%s: %d: %v", name, node, reply.Err)
				assert.True(t, node != 1 || reply.Err != nil || name == "lies", name)
				n++
				if node != 1 {
					well++
				}
				if well == 4 { // only the bad node is awaited, which ends with ctx
					cancel()
				}
			}
			require.Equal(t, 5, n)
			require.Less(t, runtime.NumGoroutine(), 200, "none waits for the bad node; the servers have some, too")
		})
	}
}

// TestAwait: until a majority is up, also of servers that start later; else the reason of each node that is down.
func TestAwait(t *testing.T) {
	masters := fakeredis.StartN(t, 3)
	masters.Down()
	all, err := conn.ParseAddresses(fakeredis.Addrs(masters))
	require.NoError(t, err)
	nodes, err := conn.Open(conn.Config{Addresses: all})
	require.NoError(t, err)
	defer nodes.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err = nodes.Await(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for _, m := range masters {
		require.ErrorContains(t, err, m.Addr())
	}
	awaits := testkit.Start(func() error { return nodes.Await(t.Context()) })
	require.NoError(t, masters[0].Heal())
	testkit.Await(t, "one node", func() (up bool) {
		nodes.Use(func(f *conn.Fleet) { up = f.Node(0).Up })
		return up
	})
	require.Empty(t, awaits)
	require.NoError(t, masters[1].Heal())
	require.NoError(t, testkit.Outcome(t, "Await", awaits))

	masters.Down()
	awaits = testkit.Start(func() error { return nodes.Await(t.Context()) })
	nodes.Close()
	err = testkit.Outcome(t, "Await", awaits)
	require.True(t, err == nil || errors.Is(err, conn.ErrClosed), "%v", err) // nil: it came before the ends were seen
	require.Equal(t, conn.ErrClosed, nodes.Await(t.Context()))
}

// TestLargeReply: a bulk string beyond MaxReply is too large, not malformed.
func TestLargeReply(t *testing.T) {
	masters := fakeredis.StartN(t, 1)
	nodes := openNodes(t, fakeredis.Addrs(masters), false)
	for i, want := range []error{nil, conn.ErrOversized} {
		masters[0].WrongReply("GET", string(resp.AppendBulkString(nil, strings.Repeat("x", 15<<10+i*2<<10))), 1)
		for _, reply := range nodes.Do(t.Context(), resp.AppendCommand(nil, "GET", "key")) {
			require.ErrorIs(t, reply.Err, want)
		}
	}
}

// TestDoRefusesOtherBytes: what is not one command would give a caller the answers of another. It is sent to no node.
func TestDoRefusesOtherBytes(t *testing.T) {
	masters := fakeredis.StartN(t, 3)
	nodes := openNodes(t, fakeredis.Addrs(masters), false)
	one := string(resp.AppendCommand(nil, "PING"))
	for _, bytes := range []string{"", one + one, one[:len(one)-1], "PING\r\n", "*0\r\n", "*-1\r\n", "*1\r\n:1\r\n", "*2\r\n$4\r\nPING\r\n", "*1\r\n$-1\r\n", "*1\r\n$99999999999\r\n", "*1\r\n$4\r\nPINGxx", "*1\r\n$\r\n\r\n", "*01\r\n$4\r\nPING\r\n", "*1\r\n$04\r\nPING\r\n", "*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$1\r\n0\r\n",
		"*2\r\n$6\r\nselect\r\n$1\r\n1\r\n", "*1\r\n$5\r\nMULTI\r\n", "*2\r\n$9\r\nSubscribe\r\n$1\r\na\r\n"} {
		n := 0
		for _, reply := range nodes.Do(t.Context(), []byte(bytes)) {
			require.ErrorIs(t, reply.Err, conn.ErrCommand, "%q", bytes)
			n++
		}
		require.Equal(t, 3, n)
	}
	require.Zero(t, masters[0].Count("PING"))
	for _, reply := range nodes.Do(t.Context(), []byte(one)) {
		require.NoError(t, reply.Err)
	}
}

// blocking is an owner that blocks in Done.
type blocking struct {
	conn.Batch
	begun, ends chan struct{}
}

func (b *blocking) Reply(int, int, *resp.Value) error { return nil }
func (b *blocking) Fail(int, int, error)              {}
func (b *blocking) Done()                             { close(b.begun); <-b.ends }

// TestNoCallerHarmsAnother: not by a panic or the end of its goroutine in its loop, nor by what it keeps of a reply; and while
// an owner blocks, which it must not, Do still ends with its ctx, and goes on after it.
func TestNoCallerHarmsAnother(t *testing.T) {
	nodes := openNodes(t, fakeredis.Addrs(fakeredis.StartN(t, 3)), false)
	command := resp.AppendCommand(nil, "PING")
	good := func(ctx context.Context) (n int) {
		for _, reply := range nodes.Do(ctx, command) {
			if reply.Err == nil {
				n++
			}
		}
		return n
	}
	require.PanicsWithValue(t, "of a user", func() {
		for range nodes.Do(t.Context(), command) {
			panic("of a user")
		}
	})
	require.PanicsWithValue(t, "in Use", func() { nodes.Use(func(*conn.Fleet) { panic("in Use") }) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range nodes.Do(context.Background(), command) {
			runtime.Goexit()
		}
	}()
	<-ended
	require.Equal(t, 3, good(t.Context()))

	b := &blocking{begun: make(chan struct{}), ends: make(chan struct{})}
	b.Owner, b.Replies, b.Buf = b, 1, command
	nodes.Use(func(f *conn.Fleet) { f.Send(&b.Batch) })
	<-b.begun
	for range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		require.Zero(t, good(ctx))
		cancel()
	}
	close(b.ends)
	require.Equal(t, 3, good(t.Context()))
}

// TestAllocatesNothing: an exchange with five nodes, in the steady state. The masters are in another process.
func TestAllocatesNothing(t *testing.T) {
	nodes := openNodes(t, cluster.Masters(t), false)
	command := resp.AppendCommand(nil, "SET", "key", "value")
	own := &decision{decided: make(chan quorum.Verdict, 1), done: make(chan struct{}, 1)}
	own.Owner, own.Buf, own.Replies = own, command, 1
	for name, exchange := range map[string]func() quorum.Verdict{
		"Do": func() quorum.Verdict {
			granted := 0
			for _, reply := range nodes.Do(context.Background(), command) {
				if reply.Err == nil {
					if granted++; granted == 3 {
						return quorum.Won
					}
				}
			}
			return quorum.Lost
		},
		"Use": func() quorum.Verdict {
			own.votes.Reset(majority)
			nodes.Use(func(f *conn.Fleet) { f.Send(&own.Batch) })
			defer func() { <-own.done }()
			return <-own.decided
		},
	} {
		least := math.Inf(1)
		for range 20 {
			least = min(least, testing.AllocsPerRun(100, func() {
				if exchange() != quorum.Won {
					t.Error(name)
				}
			}))
		}
		if !testkit.Race { // it empties pools
			require.Zero(t, least, name)
		}
	}
}
