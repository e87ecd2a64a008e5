package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

var exclusiveAndShared = map[string]func(*redlock.Client, context.Context, string, time.Duration) (redlock.Lock, error){
	"exclusive": (*redlock.Client).TryAcquire, "shared": (*redlock.Client).TryAcquireShared,
}

// TestPromotedNodesForget: a lock is held, and two of three masters become replicas of an empty server and are promoted
// again, one after the other. No connection ends, and none of the two refuses a write. No other client gets the lock
// before it is over, whether it was idle meanwhile or not; then it does.
func TestPromotedNodesForget(t *testing.T) {
	const ttl = 30 * time.Second
	strict := func(c *redlock.Config) { c.MaxTTL = time.Minute }
	for name, change := range map[string]func(*redlock.Config){
		"plain":  func(*redlock.Config) {},
		"MaxTTL": strict,
		"fenced": func(c *redlock.Config) { strict(c); c.Fenced = true },
	} {
		for of, acquire := range exclusiveAndShared {
			for _, busy := range []bool{false, true} {
				cluster.Run(t, fmt.Sprint(name, ", ", of, ", busy ", busy), func(t *testing.T) {
					ctx, end := context.WithCancel(t.Context())
					defer end()
					holder := cluster.New(t, 3, change)
					time.Sleep(2 * time.Minute) // servers are up for longer than MaxTTL
					other := cluster.Connect(t, fakeredis.Addrs(holder.Servers), change)
					if name == "fenced" {
						require.NoError(t, holder.InitFencing(ctx))
					}
					require.NoError(t, other.Ready(ctx))
					require.NoError(t, pair(other, "another", ttl))
					if busy {
						go func() {
							for ctx.Err() == nil {
								_ = pair(other, "another", ttl)
								time.Sleep(10 * time.Millisecond)
							}
						}()
					}
					time.Sleep(10 * time.Second)
					held := testkit.Must(acquire(holder.Client, ctx, "k", ttl))(t)
					for _, s := range holder.Servers[:2] {
						s.Demote()
						time.Sleep(500 * time.Millisecond)
						s.Promote()
						time.Sleep(time.Second)
					}
					for held.Remaining() > 0 {
						require.Error(t, pair(other, "k", ttl), "with %v left", held.Remaining())
						time.Sleep(time.Second)
					}
					time.Sleep(time.Minute)
					if err := pair(other, "k", ttl); name != "fenced" {
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, redlock.ErrForgotten)
					}
					end()
					time.Sleep(time.Second)
				})
			}
		}
	}
}

// TestReplicaSeen: a node that was a replica has no vote when it is a master again, although its history shows nothing: it
// has refused a write, or a handshake while it was down.
func TestReplicaSeen(t *testing.T) {
	const ttl = 10 * time.Second
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		s := r.Servers[0]
		node := func() redlock.Node { return r.Stats().Nodes[0] }
		for name, show := range map[string]func(){
			"by a write": func() {
				s.ErrorReply("SET", "READONLY You can't write against a read only replica.", 1)
				liveFor(t, r.Client, "k", ttl)
			},
			"in a handshake": func() {
				s.WrongReply("INFO", "$12\r\nrole:slave\r\n\r\n", 1)
				s.ResetConns()
			},
		} {
			liveFor(t, r.Client, "k", ttl)
			require.Zero(t, node().NoVoteFor, name)
			connects := node().Connects
			show()
			testkit.Await(t, "a new connection "+name, func() bool { return node().Connects > connects && node().Up })
			require.Positive(t, node().NoVoteFor, name)
			time.Sleep(2 * ttl)
		}
	})
}

// TestEmptiedUnread: a call comes before its client has read that two of three servers have lost all keys. The votes of these
// do not count where they were replicas meanwhile. Where another database was flushed, they are asked once more: no lock
// is lost, and no call fails.
func TestEmptiedUnread(t *testing.T) {
	const ttl = time.Minute
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		other := cluster.Connect(t, fakeredis.Addrs(r.Servers))
		liveFor(t, other, "another", ttl)
		r.Servers.Delay(time.Millisecond)
		flushed := func(call func() error) {
			for _, s := range r.Servers[:2] {
				s.FlushOther()
			}
			require.NoError(t, call())
		}
		for _, acquire := range exclusiveAndShared {
			var l redlock.Lock
			flushed(func() (err error) { l, err = acquire(other, t.Context(), "another", ttl); return err })
			flushed(func() error { return l.Extend(t.Context(), ttl) })
			flushed(func() error {
				state, err := other.Inspect(t.Context(), "another")
				for _, n := range state.Nodes {
					err = errors.Join(err, n.Err)
				}
				return err
			})
			flushed(func() error { return l.Release(t.Context()) })
		}
		held := cluster.MustAcquire(t, r.Client, "k", ttl)
		for _, s := range r.Servers[:2] {
			s.Demote()
			s.Promote()
		}
		require.ErrorIs(t, errorOf(other.TryAcquire(t.Context(), "k", ttl)), redlock.ErrNoQuorum)
		require.Positive(t, held.Remaining())
	})
	cluster.Virtually(t, func(t *testing.T) { // an operator's act asks once more, too
		r := cluster.New(t, 3, func(c *redlock.Config) { c.Fenced, c.MaxTTL = true, ttl })
		time.Sleep(2 * ttl)
		require.NoError(t, r.InitFencing(t.Context()))
		liveFor(t, r.Client, "k", ttl)
		r.Servers.Delay(time.Millisecond)
		for _, s := range r.Servers[:2] {
			s.Flush()
		}
		require.NoError(t, r.RecoverFencing(t.Context(), 1))
		for _, s := range r.Servers[:2] {
			s.Demote()
			s.Promote()
		}
		require.ErrorContains(t, r.RecoverFencing(t.Context(), 1), "was a replica meanwhile")
	})
}

// TestRefusedLook: two of three servers that were replicas meanwhile do not show it, busy with a script. No attempt has their
// votes, then or later, and no handle proves its lock by the data that they have loaded.
func TestRefusedLook(t *testing.T) {
	const ttl = time.Minute
	for _, refused := range []int{0, 1} {
		cluster.Virtually(t, func(t *testing.T) {
			r := cluster.New(t, 3)
			other := cluster.Connect(t, fakeredis.Addrs(r.Servers))
			liveFor(t, other, "another", ttl)
			held := cluster.MustAcquire(t, r.Client, "k", ttl)
			for _, s := range r.Servers[:2] {
				s.Demote()
				s.Promote()
				s.Set("copied", "v", ttl)
				for _, command := range []string{"INFO", "SET"} {
					s.ErrorReply(command, "BUSY Redis is busy running a script", refused)
				}
			}
			time.Sleep(10 * time.Millisecond) // the word is read
			_, err := other.Attach(t.Context(), "copied", "v", time.Now().Add(ttl))
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			for range 3 {
				require.ErrorIs(t, errorOf(other.TryAcquire(t.Context(), "k", ttl)), redlock.ErrNoQuorum)
			}
			require.Positive(t, held.Remaining())
		})
	}
}

// TestRealPromotion: the same on real servers, of which two load the data of a fourth. The other client is idle.
func TestRealPromotion(t *testing.T) {
	const ttl = time.Minute
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		for _, acquire := range exclusiveAndShared {
			servers := realredis.StartN(t, 4, realredis.Options{Kind: kind})
			admins, addrs := cluster.NewAdmins(t, servers), cluster.RealAddrs(servers[:3])
			_, port, _ := net.SplitHostPort(servers[3].Addr())
			admins[3].Must("CONFIG SET repl-diskless-sync-delay 0")
			holder, other := cluster.Connect(t, addrs), cluster.Connect(t, addrs)
			liveFor(t, other, "another", ttl)
			held := testkit.Must(acquire(holder, t.Context(), "k", ttl))(t)
			for _, node := range admins[:2] {
				node.Must("REPLICAOF 127.0.0.1 " + port)
				testkit.Await(t, "the other server's data", func() bool {
					return strings.Contains(node.Text("INFO replication"), "master_link_status:up")
				})
				node.Must("REPLICAOF NO ONE")
			}
			require.ErrorIs(t, errorOf(other.TryAcquire(t.Context(), "k", ttl)), redlock.ErrNoQuorum)
			require.Positive(t, held.Remaining())
		}
	})
}
