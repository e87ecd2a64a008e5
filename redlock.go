// Package redlock acquires, extends and releases locks on a majority of N independent Redis or Valkey
// masters, by the Redlock algorithm.
//
//	client, err := redlock.New(redlock.Config{Nodes: []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"}})
//	...
//	err = client.Do(ctx, "orders:42", 10*time.Second, func(ctx context.Context) error {
//		return work(ctx) // ctx ends with the lock
//	})
//
// # Lock, wait, hold
//
// [Client.Do] waits for a lock, keeps it alive while a function runs, and releases it. [Client.TryDo] is for work of
// one process, skipped by the others. [Client.Acquire] and [Client.TryAcquire] return a [Lock] to extend and release by
// hand. ctx bounds waiting and work; [Client.With] can bound the waiting alone. A lock is held for its validity: the
// TTL less the time spent on acquiring, and less an allowance for clock drift (TTL/100 + 2 ms). [Lock.Remaining]
// returns what is left. [Lock.KeepAlive] and Do extend it, and end a context when they cannot.
//
// # Lose, fence
//
// A process paused until its lock has expired carries on when it wakes, although another process has the lock by then.
// With Config.Fenced each lock has a number larger than all before it, for the resource to check: see [Lock.Fence].
//
// # Share, many
//
// [Client.AcquireShared] gives one lock to any number of callers at once, as to readers. Such callers and an exclusive
// holder exclude each other. [Client.AcquireAll] makes one lock of several keys, and [Client.AcquireAny] acquires one
// of several: n keys are a semaphore, see [Permits]. Operations of the same moment are written to all nodes in one
// batch. A process needs one client, with one connection to each node and a few goroutines. [Client.Submit] is for
// event loops, Config.Groups for more locks than one set of masters can serve.
//
// A call asking the nodes blocks for one round trip, at most for Config.NodeTimeout after sending. A call waiting for a
// lock blocks until ctx ends; a nil ctx never ends. Without hooks Acquire, Extend and Release of one key allocate
// nothing in steady state; all other calls may. The errors are listed at [ErrTaken], with their meanings.
//
// The algorithm: https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
package redlock

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/redlock-go/redlock/internal/base/metrics"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/quorum"
)

// Limits of nodes, keys and TTLs.
const (
	MaxNodes = quorum.MaxNodes
	MaxKey   = client.MaxKey // 4 KiB
	MinTTL   = client.MinTTL // 10 ms
	MaxTTL   = client.MaxTTL // 365 days
)

// Config configures a client. Only Nodes, or Groups, is required; a zero field means its default.
//
// It prints without credentials. Package fmt calls no methods of unexported fields, however: a struct with a Config in
// one shows the URLs as written, and under an unfit verb TLS. There give Credentials and TLSFor: functions show nothing.
type Config struct {
	// Nodes are the masters, independent of each other (no replicas, no cluster), best an odd number. Each is "host:port"
	// or a URL, such as rediss://user:password@host:6379/0: conn.ParseAddresses has the forms. ?persistent=yes at its end
	// declares a node without quarantine (see MaxTTL): it forgets nothing in a restart (appendfsync always).
	Nodes []string
	// NextNodes are the nodes after a change. With both lists a lock needs a quorum of each; clients exclude each other if
	// they share a list. So first all get NextNodes, one by one. The longest TTL after the end of the last without it (if
	// Fenced: after [Client.ChangeFencing]) all get the new list as Nodes: OPERATORS.md of package conn.
	NextNodes []string
	// Groups, in place of Nodes, are 1 to 64 sets of masters sharing the keys, for more locks than one set can serve. The
	// group of a key follows from the order of the sets and a hash, of the part between the first { and the next } or of
	// the whole key. No master is in two sets. Clients with other Groups do not exclude each other: see NextGroups.
	Groups [][]string
	// NextGroups are the Groups after a change, in the steps of NextNodes: more groups, fewer, or other nodes in some. A
	// lock needs a quorum of its key's group in each list. A key moving to another group is locked in both, as by
	// [Client.AcquireAll], and not handed over.
	NextGroups [][]string
	// How nodes are reached: Config of package conn describes these seven fields. StallTimeout is at least NodeTimeout.
	TLS                       *tls.Config // of rediss:// nodes
	TLSFor                    func(node string) *tls.Config
	Credentials               func(ctx context.Context, node string) (user, password string, err error) // at every dial
	Dialer                    func(ctx context.Context, network, addr string) (net.Conn, error)
	DialTimeout, StallTimeout time.Duration // default: 1 s
	Portable                  bool          // package net on Linux too, where the default is raw sockets
	// Name identifies the client, such as host and process: in CLIENT LIST of the nodes, and beside the token of each
	// lock, for Inspect. At most 128 bytes of printable ASCII without spaces.
	Name string
	// MaxTTL bounds every TTL but Options.AtLeast. All clients must use the same. It makes the quarantine strict: a node
	// has no vote before its server has been up for MaxTTL plus drift, also if this client meets it for the first time; a
	// node without a run_id is refused. Without MaxTTL a node with another run_id than before has no vote for the longest
	// TTL that this client has used (without AtLeast).
	MaxTTL time.Duration
	// NodeTimeout is how long the nodes have to answer an attempt once it is sent. Votes missing at its end, noticed
	// within 5 ms, count as failed. In a burst it grows, up to 20 times. Default: TTL/20, at most 50 ms. Minimum: 1 ms.
	NodeTimeout time.Duration
	MaxWaiting  int   // bounds the operations waiting to be sent to a group; beyond it all but releases get ErrBusy. Default: 65536
	Retry       Retry // the pauses between the attempts of Acquire, and their number
	NoHandOver  bool  // sends every release to the nodes, and passes none to the next caller: see Acquire
	// Fenced gives each lock a fencing token: see [Lock.Fence], also for its conditions. It needs MaxTTL, nodes from Redis
	// 5 on with scripts and a run_id, [Client.InitFencing] once for new nodes, and all clients alike: Fenced, the same
	// names in Nodes, the same MaxTTL. Restart no second node before the first has its vote again: see Client.ReadyAll.
	Fenced     bool
	NextMaxTTL time.Duration // the MaxTTL of Fenced clients after a change, in the steps of NextNodes
	// Logger gets warnings of doubtful settings, and of nodes down, evicting keys or without a vote, with their end; at
	// Info nodes that came up, at Error panics of callbacks. A node has 12 lines a minute at most; operations have none.
	// Nil: warnings and errors go to slog.Default. slog.DiscardHandler silences it.
	Logger *slog.Logger
	Hooks  Hooks

	knobs *client.Knobs // set by tests alone
}

// Format implements fmt.Formatter: no verb shows the credentials of a node. All are %v: others follow pointers, as to TLS.
func (cfg Config) Format(f fmt.State, _ rune) {
	type plain Config // has no Format
	cfg.Nodes, cfg.NextNodes = texts.Redact(cfg.Nodes), texts.Redact(cfg.NextNodes)
	cfg.Groups, cfg.NextGroups = texts.RedactAll(cfg.Groups), texts.RedactAll(cfg.NextGroups)
	fmt.Fprintf(f, fmt.FormatString(f, 'v'), plain(cfg))
}

// Retry configures how Acquire, Do and their variants try again. A zero field means its default. A waiting caller is
// normally woken. It pauses if no node can report a free lock, if too few answer, and if Attempts is set.
type Retry struct {
	// Min and Max bound the random pause after an attempt. The longest is twice Min at first, and doubles up to Max. Keep
	// Min well above a round trip: clients asking at once may split the votes. Max is at least 1 ms, unless Attempts is
	// set. Defaults: 50 ms and 250 ms; with only the other set Min is at most Max/5, and Max at least Min.
	Min, Max time.Duration
	// Attempts is how many attempts a call makes before it fails with an [AcquireError]; 1 is one attempt without a
	// pause. Default: no limit. A caller in line also uses up an attempt after each pause, without asking the nodes,
	// so Attempts bounds the time. A handed-over lock is no attempt.
	Attempts int
}

// Client has the connections to the nodes. It is safe for concurrent use; a process needs one.
type Client struct{ client *client.Client }

// New checks cfg, connects to the nodes and returns a client. It blocks until each node has answered or failed once,
// for DialTimeout at most; the times of Credentials and of looking up names are added. Once each group has a quorum,
// slow nodes delay it by about as long again. A node that is down is no error: Ready, Stats and the Logger report why.
// Without a quorum New warns, with the reason of each node; for a Fenced client it does so a moment later, when the
// nodes have been asked.
//
// New returns ErrConfig for two addresses of one server, for a replica, a node of a cluster and a sentinel. It also
// returns it if every node refuses the client for a lasting reason: a wrong password, a missing permission, no scripts,
// another protocol. For a Fenced client one node without permissions, scripts or run_id is enough. With such an error
// nothing was written to the nodes. A node showing such a reason only after New is down: see Stats and the Logger.
func New(cfg Config) (*Client, error) {
	in := client.Config{
		Nodes: cfg.Nodes, NextNodes: cfg.NextNodes, Name: cfg.Name, Fenced: cfg.Fenced, NextMaxTTL: cfg.NextMaxTTL, NoHandOver: cfg.NoHandOver,
		Logger: cfg.Logger, Retry: client.Retry(cfg.Retry), Knobs: cfg.knobs.Value(),
		QuorumError: newQuorumError, AcquireError: newAcquireError, LostError: newLostError,
	}
	in.Engine.MaxWaiting, in.Engine.MaxTTL, in.Engine.Timeout = cfg.MaxWaiting, cfg.MaxTTL, cfg.NodeTimeout
	in.Conn.TLS, in.Conn.TLSFor, in.Conn.Credentials, in.Conn.Dialer = cfg.TLS, cfg.TLSFor, cfg.Credentials, cfg.Dialer
	in.Conn.Portable, in.Conn.DialTimeout, in.Conn.StallTimeout = cfg.Portable, cfg.DialTimeout, cfg.StallTimeout
	cfg.Hooks.install(&in)
	c, err := client.New(in, cfg.Groups, cfg.NextGroups)
	if err != nil {
		return nil, err
	}
	return &Client{c}, nil
}

// Ready waits until an acquire can win: until a quorum of nodes, in every group, is up and may vote. If ctx ends
// before, the error is the context's and a [QuorumError] for each group without a quorum: which nodes cannot vote, and
// why. With an ended ctx it returns at once, as a readiness probe needs it. After Close: ErrClosed.
func (c *Client) Ready(ctx context.Context) error { return c.client.Ready(ctx, false) }

// ReadyAll is Ready for all nodes. A rolling restart waits for it after each: with MaxTTL in one client, else in all.
func (c *Client) ReadyAll(ctx context.Context) error { return c.client.Ready(ctx, true) }

// InitFencing gives the nodes of a new fleet their vote in fencing. It acts only if every node of every group has
// answered, and none has a token, a vote or another fleet's name. Else it changes nothing, and the error names the node
// in the way. It waits for MaxTTL and returns once a quorum votes, or at once if a quorum votes already. The Logger
// names the other nodes. Repeat an interrupted call. Two calls at once do no harm.
//
// A client with NextGroups calls it for the groups added by a change. Never call it for new nodes of NextNodes: clients
// with both lists bring these in. Never call it if all Nodes were replaced at once: they look like a new fleet.
func (c *Client) InitFencing(ctx context.Context) error { return c.client.InitFencing(ctx) }

// RecoverFencing gives nodes their vote after [ErrForgotten]. Too many nodes have then lost their tokens, by a restart
// without a disk, a flush or an eviction. It acts only if the answers show this. A node out of reach may remember. If it
// never comes back name it in lost, as in Nodes, or by its host alone. If the others are no quorum, that is the error.
// RecoverFencing waits and returns as InitFencing does, and leaves a change of nodes where it was.
//
// atLeast is the largest token seen by the resources, of any key. Read it anew for each call, MaxTTL after the nodes
// were lost. A day beyond the nodes and the clock it is ErrArgument. Later tokens exceed atLeast and all shown by nodes
// until then, and the clock if too few remember. Earlier holders may have larger tokens: stop them first.
func (c *Client) RecoverFencing(ctx context.Context, atLeast uint64, lost ...string) error {
	return c.client.RecoverFencing(ctx, atLeast, lost)
}

// ChangeFencing turns the nodes from clients of the present list alone to clients of the next list alone. Call it in a
// client of both lists (NextNodes, NextGroups or NextMaxTTL), when the last client of the present one alone has ended.
// It waits until a quorum of each list votes, and only then writes to nodes. The nodes refuse clients of the present
// list at once, and serve those of the next MaxTTL later. It returns once a quorum of the next list serves them. The
// Logger names the other nodes: call it again for them. An interrupted call may be repeated.
func (c *Client) ChangeFencing(ctx context.Context) error { return c.client.ChangeFencing(ctx) }

// Shutdown ends the client gracefully. New and waiting calls fail with ErrClosed, and the contexts of [Lock.KeepAlive]
// and Do end with it as their cause. Shutdown waits for the functions of Do, and for releases. Then it frees
// everything, as Close. When ctx ends before, it closes at once and returns the context's error; locks still held end
// with their TTL. As with the Shutdown of net/http, a function of Do calling it waits for itself, until ctx ends. A
// hook may call it. A call whose hook is running then releases its lock and returns ErrClosed.
func (c *Client) Shutdown(ctx context.Context) error { return c.client.Shutdown(ctx) }

// Close ends all waits, waits up to 250 ms for operations and releases under way, and frees everything. Locks
// stay held until their TTL ends. It always returns nil.
func (c *Client) Close() error { c.client.Close(); return nil }

// Options are options of calls: see [Client.With]. A zero field is as in the client given to With.
type Options struct {
	// Wait bounds how long Acquire, Do and their variants wait for a lock, to within 5 ms. It does not bound the work.
	// When it is over the error is an [AcquireError] whose Ctx is nil: ErrNoAnswer if none had come yet. At most MaxTTL.
	Wait     time.Duration
	Attempts int // in place of Retry.Attempts
	// AtLeast is how long a lock of Do, DoAll, DoAny and TryDo stays after its grant, also if its function, client or
	// process ends before. So a job runs once in a fleet whose clocks differ by less. All callers of a key give the same.
	// After the death of a process the lock stays for the longer of ttl and AtLeast plus NodeTimeout per group. With Fenced,
	// MaxTTL is the most. Other calls return ErrArgument.
	AtLeast time.Duration
	Name    string // shown by Inspect for these locks, in place of Config.Name and within its limits: an order, a request
}

// With returns c with other options for Acquire, Do and their variants; Submit uses their Name, for acquires. All else is
// shared, as connections, locks and Stats are. Close or Shutdown of one ends both. Wrong options: ErrArgument.
func (c *Client) With(o Options) *Client { return &Client{c.client.With(client.Options(o))} }

// TryAcquire makes one attempt to acquire the lock on key for ttl. It blocks for one round trip, or until ctx ends,
// within 5 ms (later while thousands of operations wait to be sent). Keys left behind by a failed attempt are released
// in the background.
//
// Callers at the same moment may split the votes of a free lock. Then TryAcquire tries again, four times at most, each
// time after a random pause of some round trips, unless a majority shows a holder. So one of them gets it. A later
// caller gets it again once the first has released it (see [Client.TryDo]).
//
// The key at the nodes is key as it is, 1 to MaxKey bytes. ttl is MinTTL to MaxTTL, rounded down to milliseconds. The
// errors are those listed at ErrTaken, and ctx.Err(). While callers of Acquire wait for key in this client, ErrTaken
// may be up to a second old.
func (c *Client) TryAcquire(ctx context.Context, key string, ttl time.Duration) (Lock, error) {
	return lockOf(c.client.Acquire(ctx, key, ttl, client.Once))
}

// Acquire waits for the lock on key until ctx ends or the attempts of [Retry] are used up; the error is then an
// [AcquireError]. Without any bound (ctx, attempts, Options.Wait) it may wait forever. Limits: see [Client.TryAcquire].
//
// Callers of one client waiting for the same key stand in line, first in, first out; only the first asks the nodes.
// Waiting processes queue up on one node, the same for all processes with the same spelling of Config.Nodes. The first
// is notified when the lock is released, and asks when the lock's TTL ends. Package conn lists the necessary
// permissions; without them processes ask after the pauses of Retry.
//
// A released lock passes to the next caller in line of this client without a round trip; while other processes wait,
// only to callers in line at its last grant by the nodes. It goes back to the nodes from time to time, after a call of
// [Lock.Token], and with Config.NoHandOver.
//
// Queues decide who asks, votes who holds the lock. Each waiting process also asks about once a second, less often with
// hundreds of keys, so a free lock is granted. A lock in constant demand is left free for a moment every three seconds,
// for callers in no queue: other libraries, TryAcquire, other spellings of the nodes.
func (c *Client) Acquire(ctx context.Context, key string, ttl time.Duration) (Lock, error) {
	return lockOf(c.client.Acquire(ctx, key, ttl, 0))
}

// AcquireShared is Acquire for a shared lock: any number of callers hold key at once. They and an exclusive holder, by
// Acquire or by any program's SET NX, exclude each other. While an exclusive caller waits, later calls wait behind it,
// as with sync.RWMutex. So a holder asking for key again, itself or through a service, may wait for itself: bound its
// ctx. There is no upgrade.
//
// It is weaker than an exclusive lock. It has no fencing token, so a resource cannot refuse a late holder. A release
// reaching no node keeps exclusive callers out until the TTL ends. Callers in no line (TryAcquire, other libraries) may
// wait long beside steady holders. It is not handed over inside the process, and [Client.Attach] refuses it. All
// programs that lock key need this version. Its key is a sorted set, on Redis 7 or Valkey.
func (c *Client) AcquireShared(ctx context.Context, key string, ttl time.Duration) (Lock, error) {
	return lockOf(c.client.Acquire(ctx, key, ttl, client.Shared))
}

// TryAcquireShared is AcquireShared with one attempt. ErrTaken may also mean, as its text says, that writers wait.
func (c *Client) TryAcquireShared(ctx context.Context, key string, ttl time.Duration) (Lock, error) {
	return lockOf(c.client.Acquire(ctx, key, ttl, client.Once|client.Shared))
}

// AcquireAll is Acquire for 1 to 64 keys, all or nothing, in one round trip, or one for each of the Groups in turn.
// They become one lock with one token and one fencing token, extended, kept alive and released as one. An attempt
// refused by one key leaves nothing. AcquireAll stands in line for all taken keys at once, and keeps the turns it has
// for a short time. If they do not come together it may lock the keys one by one, unless attempts are limited. It
// excludes shared holders, and later ones wait behind it. It is never handed over inside the process.
func (c *Client) AcquireAll(ctx context.Context, ttl time.Duration, keys ...string) (Lock, error) {
	return lockOf(c.client.AcquireSeveral(ctx, ttl, keys, client.All))
}

// TryAcquireAll is AcquireAll with one attempt.
func (c *Client) TryAcquireAll(ctx context.Context, ttl time.Duration, keys ...string) (Lock, error) {
	return lockOf(c.client.AcquireSeveral(ctx, ttl, keys, client.Once|client.All))
}

// AcquireAny is Acquire for one of 1 to 64 keys, the first to be had: [Lock.Key] returns which. The lock is like any
// other, with its own fencing token. So n keys are a semaphore of n permits: see [Permits]. It ends as Acquire does.
//
// It takes one round trip while no caller waits and the key asked first is free; each call begins at another key. If
// that key is taken, one look at all others shows the free ones, and the next round trip takes one. Otherwise it
// stands in line for each key, first in, first out, like callers of that key alone.
func (c *Client) AcquireAny(ctx context.Context, ttl time.Duration, keys ...string) (Lock, error) {
	return lockOf(c.client.AcquireSeveral(ctx, ttl, keys, client.Any))
}

// TryAcquireAny is AcquireAny without waiting, with the errors of [Client.TryAcquire]. ErrTaken means that each key was
// refused, as a rule in two round trips. While callers of this client wait for a key, its refusal may be up to a second
// old.
func (c *Client) TryAcquireAny(ctx context.Context, ttl time.Duration, keys ...string) (Lock, error) {
	return lockOf(c.client.AcquireSeveral(ctx, ttl, keys, client.Once|client.Any))
}

// Permits returns the keys of a semaphore of n permits, 1 to 64, for [Client.AcquireAny] and [Client.AcquireAll]:
// "{name}:permit:1" and so on. A name with a {tag} is not put in braces. So all keys have one hash tag and belong to
// one of Config.Groups. All clients must use the same n: one with a larger n has more permits.
func Permits(name string, n int) []string { return client.Permits(name, n) }

// Do acquires the lock on key as Acquire does, calls f with a context like that of [Lock.KeepAlive], and releases the
// lock in every case, also after a panic of f. It returns the error of Acquire or of f. If the lock was seen to be lost
// before f returned, a [LostError] is joined to that of f (errors.Join). ttl must be at least 30 ms. If ctx comes from
// a lock on the same key (a nested Do), Do returns ErrArgument rather than wait for itself.
//
// Do does not wait for its release. As a rule the kernel has the release when Do returns. Without raw sockets, or while
// other operations are under way, it is sent within a round trip, before all later operations on key. A program ending
// right after Do calls Close or Shutdown, to wait for it. A key deleted after the last renewal is not noticed.
func (c *Client) Do(ctx context.Context, key string, ttl time.Duration, f func(ctx context.Context) error) error {
	return c.client.Do(ctx, ttl, 0, f, key)
}

// DoShared is Do for a shared lock: see AcquireShared. It refuses a ctx from any lock on key.
func (c *Client) DoShared(ctx context.Context, key string, ttl time.Duration, f func(ctx context.Context) error) error {
	return c.client.Do(ctx, ttl, client.Shared, f, key)
}

// TryDoShared is DoShared with one attempt, as by TryAcquireShared.
func (c *Client) TryDoShared(ctx context.Context, key string, ttl time.Duration, f func(ctx context.Context) error) error {
	return c.client.Do(ctx, ttl, client.Once|client.Shared, f, key)
}

// DoAll is Do for the lock on several keys, as by AcquireAll.
func (c *Client) DoAll(ctx context.Context, ttl time.Duration, keys []string, f func(ctx context.Context) error) error {
	return c.client.Do(ctx, ttl, client.All, f, keys...)
}

// DoAny is Do for the lock on one of several keys, as by AcquireAny. It refuses a ctx from locks on all.
func (c *Client) DoAny(ctx context.Context, ttl time.Duration, keys []string, f func(ctx context.Context) error) error {
	return c.client.Do(ctx, ttl, client.Any, f, keys...)
}

// TryDo is Do with one attempt: for work of one process, skipped by the others. ErrTaken means that f was not called,
// unless f itself returns ErrTaken. If several call at the same moment, one of them runs f, however short f is. If
// another caller is seen before f returns, the lock stays for 50 ms after its grant, or some round trips if longer. So
// the other finds it taken. It stays for ttl at most: let that be 20 round trips. A caller after the release runs f
// again, and so may a process whose clock is late. A job to run once in a fleet needs Options.AtLeast.
func (c *Client) TryDo(ctx context.Context, key string, ttl time.Duration, f func(ctx context.Context) error) error {
	return c.client.Do(ctx, ttl, client.Once, f, key)
}

// Attach returns a handle on a lock acquired by another process, client or library. token is the lock's, 1 to 256 bytes
// (see [KeyState.Token]); a quorum of nodes must have it. Validity ends at validUntil, or earlier if the nodes show
// less; KeepAlive extends by the TTL left at the call. It blocks for one round trip to all nodes, at most for
// NodeTimeout. The errors are ErrNotHeld, ErrNoQuorum, ErrExpired, ErrArgument and ctx.Err().
func (c *Client) Attach(ctx context.Context, key, token string, validUntil time.Time) (Lock, error) {
	return lockOf(c.client.Attach(ctx, key, token, validUntil))
}

// Lock is a handle on an acquired lock of one key or, by [Client.AcquireAll], of several. It is a small value: copies
// are handles on the same lock. It is safe for concurrent use. Once the lock is released the calls of all its handles
// return ErrNotHeld, as do the calls of the zero Lock.
type Lock struct{ handle client.Handle }

func lockOf(h client.Handle, err error) (Lock, error) { return Lock{h}, err }

// Key returns the locked key, the first of several.
func (l Lock) Key() string { return l.handle.Key() }

// Keys returns all locked keys, those of a group together, in the order of their bytes.
func (l Lock) Keys() []string { return l.handle.Keys() }

// Token returns the token of the lock, or "" once it is released. It is the value at the key: it proves that the lock
// is held, and can release it. Keep it secret. [Client.Attach] takes it. The next holder must have another token, so
// after a call of Token the lock goes back to the nodes before the next caller in line gets it (see [Client.Acquire]).
func (l Lock) Token() string { return l.handle.Token() }

// Fence returns the fencing token, or 0 without Config.Fenced and for an attached lock. It is below 2^53. It is larger
// than the token of every lock on the key granted to any fenced client before this lock's attempt began. A resource
// remembering the largest token and refusing smaller ones is protected from a holder paused beyond its validity. Fence
// does not block.
//
// Fencing needs no right clock, no bound on pauses and no order of messages. Its conditions are:
//
//   - all fenced clients are configured alike (Config.Fenced);
//   - a connection ends with its server;
//   - no node returns with an older state under the same run_id, as a promoted replica or a restored snapshot does;
//   - clocks run at about the same rate; where a client restores a node's tokens, its clock counts suspensions (Linux
//     does);
//   - [Client.RecoverFencing] is given a right number, if more than a minority of nodes has lost the tokens.
//
// A lock handed over inside the process has a new token. If the nodes had lost the lock, this token may be smaller
// than one they have granted since; the resource refuses it.
func (l Lock) Fence() uint64 { return l.handle.Fence() }

// Remaining returns the validity left, or 0. On Linux it counts suspensions of the machine. Elsewhere Go programs
// cannot: after a suspension a lock may seem held for that much longer.
func (l Lock) Remaining() time.Duration { return l.handle.Remaining() }

// Extend makes the lock last for ttl from now at least, if a quorum of nodes still holds it. It never shortens a lock,
// so a late extension does no harm; Release ends a lock early. It never acquires a lost lock again. A node without the
// key gets it back once others have extended it.
//
// The error is ErrExpired if validity ended before the call, or before the nodes answered, and ErrNotHeld if the lock
// is lost. After ErrNoQuorum or the context's error the lock is held for what Remaining returns, without the extension.
func (l Lock) Extend(ctx context.Context, ttl time.Duration) error { return l.handle.Extend(ctx, ttl) }

// Release deletes the key on all nodes, also after its validity. It blocks until a quorum has answered. If ctx has
// ended the release is sent, and Release does not wait. Validity ends when Release is called, unless it returns
// ErrClosed: no node was asked then. MaxWaiting does not apply.
//
// There are three results: nil, the lock is released; ErrNotHeld, a quorum had lost it before; and any other error,
// unknown. The lock then ends with its TTL at the latest, and Release may be called again. From a second call,
// ErrNotHeld means that the lock was released or has expired.
func (l Lock) Release(ctx context.Context) error { return l.handle.Release(ctx) }

// ReleaseAsync queues the release and does not wait. For its handles the lock is released at once. The release of a
// lone caller is sent with its next call, or 5 ms later. It keeps its place among the operations on the key. A node
// gets it later if it is down. Only Stats counts the result. MaxWaiting does not apply.
func (l Lock) ReleaseAsync() { l.handle.ReleaseAsync() }

// KeepAlive extends the lock in the background by the TTL given last, at each third of it, and tries again while
// validity is left. It ends with stop, with a release of the lock, and with ctx: a deadline of ctx bounds how long a
// lock is held. stop may be called twice, and does not release the lock.
//
// The returned context is derived from ctx. It ends when the lock is no longer kept alive, with its validity at the
// latest. [context.Cause] returns why:
//
//   - ErrStopped: stop was called, or the lock was released;
//   - ErrNotHeld: too few nodes held it: it was deleted, or is another's;
//   - ErrNoQuorum, a *QuorumError: too few nodes answered while it was valid;
//   - ErrExpired: the process or machine was paused beyond its validity;
//   - ErrArgument, at once: kept alive already, or a TTL below 30 ms;
//   - ErrClosed: the client was closed; or the cause of ctx.
//
// Err of the context reads the clock, so it is right after a pause; Done is closed a millisecond later. Against work
// going on after a pause the resource must check the fencing token: see [FenceFrom]. A deleted key is noticed within a
// third of the TTL.
//
// KeepAlive does not block. It allocates, and takes a goroutine only for a kind of ctx unknown to package context.
func (l Lock) KeepAlive(ctx context.Context) (_ context.Context, stop func()) {
	kept := l.handle.KeepAlive(ctx)
	return kept, kept.Stop
}

// Wanted returns a channel that is closed once another caller waits for the lock (Acquire, Do and their variants), or
// if one waits already: so a holder of long work can give it up early. A caller of this process closes it at once, one
// of another process about a round trip after it has begun to wait, or two seconds if a message was lost. Holders
// sharing a lock do not want it from each other. Callers of TryAcquire and pollers leave no trace: other libraries, and
// processes to which no node reports changes. The channel is nil for a released lock, and the same for all calls with
// one holder. Wanted does not block, and allocates. While the lock is held it costs each node a question a second.
func (l Lock) Wanted() <-chan struct{} { return l.handle.Wanted() }

// Format implements fmt.Formatter. Every verb shows the key, the validity and a digest of the token, no token.
func (l Lock) Format(f fmt.State, _ rune) { fmt.Fprint(f, l.handle.Text()) }

// MarshalText is Format for log/slog and encoding/json.
func (l Lock) MarshalText() ([]byte, error) { return []byte(l.handle.Text()), nil }

// FenceFrom returns the fencing token of the lock behind ctx: a context of [Lock.KeepAlive] or [Client.Do], or derived
// from one. Of nested locks the innermost counts. It returns false without a lock or a token.
func FenceFrom(ctx context.Context) (token uint64, ok bool) { return client.FenceFrom(ctx) }

// WantedFrom is [Lock.Wanted] of the lock behind ctx, or nil without a lock. See [FenceFrom].
func WantedFrom(ctx context.Context) <-chan struct{} { return client.WantedFrom(ctx) }

// The results of an operation, for errors.Is. An error matches at most one of them. A call waiting in vain returns an
// [AcquireError], and this also matches the context's error; all other calls return the context's error as it is. A
// lock lost by Do is a [LostError]; an ErrNoQuorum is a [QuorumError] with the error of each node.
var (
	// ErrTaken: nodes denied the lock, and the others are no quorum. It has another holder, or it is to be shared and a
	// waiting writer comes first. An attempt whose votes were split was made again, four times.
	ErrTaken = client.ErrTaken
	// ErrSplit, seen only in Op.Err and Hooks.Attempt: some nodes granted the lock, and too many others denied it. Callers
	// may have split the votes of a free lock: try again after a random pause of about a round trip.
	ErrSplit = client.ErrSplit
	// ErrNoQuorum: too few nodes answered. After Extend the lock is held for as long as Remaining says.
	ErrNoQuorum  = client.ErrNoQuorum
	ErrNoAnswer  = client.ErrNoAnswer  // the nodes had not answered yet when Options.Wait or the attempts were used up
	ErrExpired   = client.ErrExpired   // no validity was left when the votes came, or when Extend was called
	ErrNotHeld   = client.ErrNotHeld   // the lock to extend or release was released, has expired on the nodes, or is another's
	ErrClosed    = client.ErrClosed    // the client is closed
	ErrBusy      = client.ErrBusy      // Config.MaxWaiting operations wait already
	ErrStopped   = client.ErrStopped   // no longer kept alive, as asked: a cause of Lock.KeepAlive
	ErrForgotten = client.ErrForgotten // too many nodes have lost the fencing tokens: see Client.RecoverFencing
	// ErrConfig: the Config is wrong, or every node refuses it. Of a fenced acquire: nodes have the tokens of clients
	// with other Nodes or another MaxTTL, or the clock of this machine cannot be right.
	ErrConfig   = client.ErrConfig
	ErrArgument = client.ErrArgument // a key, ttl, function or Op out of its limits
)

// AcquireError is the error of Acquire, Do and their variants after giving up, for errors.As. It wraps Ctx and Last:
// errors.Is finds both context.DeadlineExceeded and ErrTaken, say. The first caller in line asks for all.
type AcquireError struct {
	Key      string // the first of several
	Attempts int
	Waited   time.Duration // in all
	Last     error         // of the last attempt: ErrTaken, a *QuorumError, ErrExpired, ErrBusy, ErrNoAnswer; or nil beside Ctx
	Ctx      error         // of the context, with its cause; nil if the attempts or Options.Wait were used up
}

func (e *AcquireError) Error() string {
	return texts.GaveUp(e.Key, e.Attempts, e.Waited, e.Last, e.Ctx)
}

func (e *AcquireError) Unwrap() []error { return texts.NotNil(e.Ctx, e.Last) }

func newAcquireError(key string, attempts int, waited time.Duration, last, ended error) error {
	return &AcquireError{Key: key, Attempts: attempts, Waited: waited, Last: last, Ctx: ended}
}

// LostError is the error of Do and its variants for a lock lost between acquire and release, for errors.As: f was
// called. Any other error of Do is that of f, or f was not called.
type LostError struct {
	Key   string // the first of several
	Cause error  // ErrExpired, ErrNotHeld, ErrClosed after Close, or the error of the last renewal
}

func (e *LostError) Error() string { return texts.Lost(e.Key, e.Cause) }
func (e *LostError) Unwrap() error { return e.Cause }

func newLostError(key string, cause error) error { return &LostError{key, cause} }

// QuorumError is an ErrNoQuorum with the votes up to the verdict, for errors.As. It wraps Cause and each of Failed. The
// failure of a node never makes errors.Is find the error of a context, or another error listed at ErrTaken.
type QuorumError struct {
	Kind                   OpKind // 0 for Ready and Attach
	Cause                  error  // ErrNoQuorum
	Nodes, Granted, Denied int    // numbers of nodes
	Failed                 []NodeError
	InNodes, InNextNodes   bool // the list without a quorum, while the nodes of a group change
}

func (e *QuorumError) Error() string {
	return texts.NoQuorum(e.Nodes, e.Denied, e.Failed, e.InNodes, e.InNextNodes, e.Kind == OpRelease)
}

func (e *QuorumError) Unwrap() []error { return texts.Causes(e.Cause, e.Failed) }

func newQuorumError(n *client.Group, op *client.Operation) error {
	lacking, t := n.Lacking(op), &op.Tally
	e := &QuorumError{Kind: OpKind(op.Kind), Cause: op.Err, Nodes: n.Len(), InNodes: lacking.Nodes, InNextNodes: lacking.NextNodes}
	e.Granted, e.Denied = t.Count(quorum.Granted), t.Count(quorum.Denied)
	for _, f := range n.Failures(op) {
		e.Failed = append(e.Failed, NodeError{n.Number(f.Node), n.Addr(f.Node), f.Err})
	}
	return e
}

// NodeError is the failure of one node.
type NodeError struct {
	Node int    // its Node.Index
	Addr string // without credentials
	Err  error
}

func (e NodeError) Error() string { return texts.NodeFailure(e.Addr, e.Err) }
func (e NodeError) Unwrap() error { return e.Err }

// OpKind is the kind of an operation. Its String is "acquire", "extend", "release", "acquire shared" and so on. Hooks
// and errors have only the first three, also for shared locks.
type OpKind uint8

const (
	OpAcquire OpKind = 1 + iota
	OpExtend
	OpRelease
	OpAcquireShared // see Client.AcquireShared
	OpExtendShared
	OpReleaseShared
)

func (k OpKind) String() string { return texts.Kind(client.KindOf(uint8(k))) }

// Op is an operation for callers with an event loop: Submit does not block, and a callback completes it. It must not be
// touched from Submit until Done, or until a Cancel has returned true; then it can be reused. It must not be copied. An
// OpExtend knows nothing of the lock but its token. Nodes without the key do not get it again. When it is done its
// caller must check whether validity had ended.
type Op struct {
	Kind OpKind
	Key  []byte        // 1 to MaxKey bytes
	TTL  time.Duration // of acquires and extends
	// Within bounds the time from Submit to Done, which comes up to 5 ms later, with context.DeadlineExceeded. An acquire
	// is then released, a release sent, and an extend done or not. 0: NodeTimeout alone, which counts from sending.
	Within time.Duration
	// Done is called once, by a goroutine of the client. It may use the client, and Submit this Op again. The Dones of a
	// group of nodes run one at a time. If one takes 20 ms, the others run beside it. A panic is recovered and logged.
	Done func(*Op)

	own client.OpCell // has the token: package fmt prints what is in an Op itself
}

// Token returns the token of the lock, a secret: see [Lock.Token]. An OpAcquire has one from Done on, and keeps it for
// the extends and the release to follow. It allocates.
func (op *Op) Token() string { return op.own.Get().Value() }

// SetToken sets the lock of an extend or a release, by its token.
func (op *Op) SetToken(token string) { op.own.Get().SetValue(token) }

// Submit begins op. It neither blocks nor, after its first use, allocates. With an error Done is not called: ErrBusy,
// ErrClosed, or ErrArgument for a wrong op or one under way. An OpRelease gets no ErrBusy. Done may be called before
// Submit returns.
//
// An OpAcquire is one attempt. If servers had just closed idle connections, or lost the keys of a database, it may end with
// ErrNoQuorum, where TryAcquire tries once more.
//
// ErrBusy is back-pressure: take no more work before a Done, or for a millisecond: the queue may be full of releases of
// failed attempts, without a Done. With deadlines set MaxWaiting to what the nodes do in half of Op.Within, rate ×
// Within / 2: beyond it operations wait in vain.
func (c *Client) Submit(op *Op) error {
	if op == nil {
		return client.WrongArgument("operation is nil")
	}
	in := op.own.Get()
	if !in.Reserve() {
		return client.ErrUnderWay // and it is not changed
	}
	in.Key, in.TTL, in.Within, in.Done, in.User = op.Key, op.TTL, op.Within, nil, (*completion)(op)
	in.Kind, in.Shared = client.KindOf(uint8(op.Kind))
	if op.Done != nil {
		in.Done = in
	}
	return c.client.Submit(in)
}

// Cancel takes op back; an acquire already sent is released in the background. It returns false if Done was called or
// will be (a second group or attempt may take another round trip), or if op was not submitted to this client.
func (c *Client) Cancel(op *Op) bool { return op != nil && c.client.Cancel(op.own.Get()) }

// Err returns the error, as TryAcquire, Extend or Release would return it. It is valid from Done on.
func (op *Op) Err() error { return op.own.Get().Result() }

// Remaining returns the validity left after an OpAcquire or OpExtend without an error, else 0.
func (op *Op) Remaining() time.Duration { return op.own.Get().Remaining() }

// Fence returns the fencing token of an OpAcquire without an error, or 0: see [Lock.Fence].
func (op *Op) Fence() uint64 { return op.own.Get().Fence() }

// Format implements fmt.Formatter. Every verb shows the kind, the key, the TTL and a digest of the token, no token.
func (op *Op) Format(f fmt.State, _ rune) { fmt.Fprint(f, op.text()) }

// MarshalText is Format for log/slog and encoding/json.
func (op *Op) MarshalText() ([]byte, error) { return []byte(op.text()), nil }

func (op *Op) text() string { return texts.Op(op.Kind, op.Key, op.TTL, op.Token()) }

// completion hides Complete from the users of Op.
type completion Op

func (op *completion) Complete(*client.Operation) { op.Done((*Op)(op)) }

// Stats has the counts of a client since New, and the state of its nodes; the nodes of a group are read at the same moment.
type Stats struct {
	// Acquire, Extend and Release count attempts by their end: an Acquire of three tries counts three times, a lock of
	// several keys once, beside the keys taken one by one by AcquireAll. A call asking for no lock is no attempt.
	Acquire, Extend, Release struct {
		Won, Denied, NoQuorum, Expired uint64 // Denied is ErrTaken or ErrNotHeld
		Cancelled, Refused             uint64 // the context's error, or Cancel; ErrBusy or ErrClosed
	}
	// Waits counts the calls of Acquire, Do and their variants that waited after their first attempt.
	Waits struct {
		Granted, HandedOver uint64 // by the nodes; by the last holder, inside the process
		GaveUp, UsedUp      uint64 // the context ended; the attempts or Options.Wait were used up
		Closed, Failed      uint64 // ErrClosed; another error
		Total, Longest      time.Duration
	}
	// AcquireTimes has the durations of attempts for one key decided by the nodes, from the call to the verdict.
	// WaitTimes is of Waits. Counts[i] is of times up to TimeBounds[i], the last of longer ones.
	AcquireTimes, WaitTimes struct {
		Counts [len(TimeBounds) + 1]uint64
		Sum    time.Duration
	}
	Held, KeptAlive     int    // locks with validity left (0.2 s late at most), none of an Op; locks kept alive
	InLine              int    // waiting callers
	Lost, HandedOver    uint64 // locks lost while kept alive; passed on inside the process
	Cleanups            uint64 // releases after failed acquires; not counted in Release
	Batches, Operations uint64 // writes, each to all nodes of a group; their operations, cleanups included
	Waiting, InFlight   int    // not yet sent, at most about Config.MaxWaiting plus cleanups; sent, without a verdict
	Nodes               []Node // in the order of Node.Index
}

// TimeBounds are the upper bounds of the times in Stats, from 100 µs to 30 s.
var TimeBounds = metrics.Bounds

// WriteMetrics writes s in the text format of Prometheus (0.0.4), in one Write. The names do not change.
func (s Stats) WriteMetrics(w io.Writer) error {
	return metrics.Write(w, metrics.Stats[Node](s), func(n Node) metrics.Node { return metrics.Node(n) })
}

// Node is the state of a node at one moment.
type Node struct {
	Index                int    // its number, from 0, group by group: in each, Nodes, then those only in NextNodes
	Group                int    // the number of its group, from 0
	GroupReady           bool   // a quorum of its group is up and may vote, as for Client.Ready
	Addr                 string // without credentials
	InNodes, InNextNodes bool   // its lists: of Nodes, or of Groups
	Up                   bool   // it has a connection
	Err                  error  // why it has none, a *conn.Error; nil while up; never a credential
	// Server is its product and version, as shown, or "". Dialect is its commands to release and extend a lock, such as
	// "DELIFEQ, EVALSHA". Volatile is its settings against ?persistent=yes, or "". They stay without a connection.
	Server, Dialect, Volatile string
	Connects                  uint64 // connections so far, the present one included
	// RoundTrips counts its fully answered batches; RoundTrip is how long they took, smoothed as in RFC 6298, and before
	// the first that of the greeting; RoundTripMax is the longest. Answers after a quorum are read up to 5 ms late.
	RoundTrips              uint64
	RoundTrip, RoundTripMax time.Duration
	InFlight                int           // replies it owes
	Granted, Denied, Failed uint64        // its votes; those of a node down or late count as failed
	Serves                  string        // which fenced clients it serves, by this client's lists: "now", "next" or "now+next"; up to MaxTTL late
	NoVote                  error         // why it has no vote in locks now, restarts and fencing included; nil: it votes
	NoVoteFor               time.Duration // for how long still at least, if known
}

// Stats returns the counts and the state of the nodes. It blocks while another goroutine uses the sockets: for
// microseconds, or up to 5 ms while replies are awaited. It allocates Stats.Nodes.
func (c *Client) Stats() Stats { return Stats(client.Stats(c.client, newNode)) }

func newNode(n metrics.Node) Node { return Node(n) }

// KeyState is what the nodes have at a key.
type KeyState struct {
	Key    string
	Status KeyStatus
	// Holder is the Config.Name of the holder, or "". Digest is a short hash of the value, to distinguish two
	// holders. Both are of the value on most nodes.
	Holder, Digest string
	TTL            time.Duration // what a quorum of nodes shows at least; of a shared lock, that of its longest holder
	Holders        int           // of a shared lock: at least so many, as a quorum of nodes shows
	Names          []string      // their Config.Names, each once; a node shows about 100, with the longest TTLs
	Nodes          []KeyOnNode   // in the order of Node.Index

	value client.Value // of a quorum
}

// KeyOnNode is what one node has at a key.
type KeyOnNode struct {
	Node           int    // its Node.Index
	Addr           string // without credentials
	Holder, Digest string // as in KeyState; "" if there is no key
	TTL            time.Duration
	Holders        int   // of a shared lock
	NoTTL          bool  // there is a key without an expiry
	Err            error // why the node did not answer
}

// KeyStatus sums up what the nodes have at a key. Its String is a few words.
type KeyStatus uint8

const (
	KeyUnknown KeyStatus = iota // too few nodes answered
	KeyFree                     // a quorum of nodes has no such key
	KeyHeld                     // a quorum of nodes has the same value
	KeySplit                    // several values, none with a quorum: attempts under way, or their remains until these expire
	KeyEternal                  // a quorum of nodes has a value without an expiry, as SETNX leaves it: no lock does
	KeyShared                   // a quorum of nodes has holders of a shared lock
)

func (s KeyStatus) String() string { return client.Status(s).String() }

// IsHeldBy reports whether l holds the key.
func (s KeyState) IsHeldBy(l Lock) bool { return s.Token() != "" && s.Token() == l.handle.Value() }

// Token returns the value on a quorum of nodes, or "": the token of the holder, a secret. With it [Client.Attach]
// gives an operator a handle to release this lock. Until then the holder's process may pass the lock on to its next
// caller in line, with the same token: see [Lock.Token].
func (s KeyState) Token() string { return s.value.Show() }

// Inspect asks each node what it has at key, and waits for all of them, at most for NodeTimeout. It changes nothing.
// Value and TTL are not read at the same moment. The error is ctx.Err(), ErrClosed or ErrArgument. The
// failure of a node, also of one with a value of another type, is in its KeyOnNode. Package conn lists the permissions.
func (c *Client) Inspect(ctx context.Context, key string) (KeyState, error) {
	seen, all, err := c.client.Inspect(ctx, key)
	if err != nil {
		return KeyState{}, err
	}
	s := KeyState{Key: key, Status: KeyStatus(all.Status), Holder: all.Holder, Digest: all.Digest, TTL: all.TTL, Holders: all.Held.Count, Names: all.Held.Names(), value: all.Value}
	for _, n := range seen {
		holder, digest := n.Holder()
		s.Nodes = append(s.Nodes, KeyOnNode{
			Node: n.Node, Addr: n.Addr, Holder: holder, Digest: digest, TTL: n.TTL, Holders: n.Held.Count, NoTTL: n.There && n.TTL == 0, Err: n.Err,
		})
	}
	return s, nil
}

// Hooks are optional. A goroutine of each group calls them in the order of events, soon after each, and on no caller's
// way. A slow one delays the next by 20 ms at most, and a panic is logged. They may use the client, also Stats, Close
// and Shutdown. Beside blocked hooks further attempts, acquisitions and votes may be dropped. Close lets hooks hear of
// all before it, but waits 0.5 s at most for a blocked one. Of what comes after it they hear nothing.
type Hooks struct {
	// Attempt is called for each attempt counted by Stats, with the votes on the deciding key. Some calls allocate the
	// text of the key. It is not called for releases without a waiting caller: ReleaseAsync, Do.
	Attempt func(Attempt)
	// Acquire is called for the end of each Acquire, Do and their variants with an attempt made.
	Acquire func(Acquisition)
	// Vote is called for each vote of a node, also on cleanups.
	Vote func(Vote)
	// NodeUp is called when a connection came up, NodeDown when one ended, or New could not make it. Close does not call
	// NodeDown. NodeQuarantined is called for a node after a restart or the loss of its fencing tokens: it has no vote for
	// Node.NoVoteFor.
	NodeUp, NodeDown, NodeQuarantined func(Node)
	// LockLost is called once for a lock gone before its release: Extend or Release returned ErrNotHeld, Extend
	// returned ErrExpired, or it could not be kept alive. It is not called for an Op.
	LockLost func(key string, err error)
}

// Attempt is the result of an attempt, with its votes up to the verdict, if a node was asked.
type Attempt struct {
	Kind                    OpKind
	Key                     string          // the first of several
	Duration                time.Duration   // from before it was queued
	Ended                   time.Time       // earlier than the hook hears of it
	Granted, Denied, Failed int             // numbers of nodes
	Err                     error           // what TryAcquire, Extend or Release returns
	Ctx                     context.Context // of the caller; it may have ended. nil: of an Op, or an extension in the background
}

// Acquisition is the result of an Acquire.
type Acquisition struct {
	Key        string // the first of several; of AcquireAny the acquired one
	Attempts   int
	Waited     time.Duration   // in all, including the attempts
	HandedOver bool            // by the last holder, inside the process
	Ended      time.Time       // earlier than the hook hears of it
	Err        error           // what Acquire returns
	Ctx        context.Context // of the caller; it may have ended
}

// Vote is the vote of one node on one operation.
type Vote struct {
	Kind    OpKind
	Node    int    // its Node.Index
	Addr    string // without credentials
	Outcome Outcome
	Err     error // why it failed, else nil
}

// Outcome is how a node voted. Its String is "granted", "denied" or "failed".
type Outcome uint8

const (
	Granted Outcome = 1 + iota // the node did as asked
	Denied                     // the key is another holder's, or gone
	Failed                     // no usable answer: the node may have done it, or not
)

func (o Outcome) String() string { return quorum.Outcome(o).String() }

// install makes a group call h, with the types of this package.
func (h Hooks) install(in *client.Config) {
	in.OnLockLost = h.LockLost
	if f := h.Attempt; f != nil {
		in.OnAttempt = func(a client.Attempt) {
			f(Attempt{
				Kind: OpKind(a.Kind), Key: a.Key, Duration: a.Took, Ended: a.Ended, Err: a.Err, Ctx: a.Ctx,
				Granted: a.Votes.Count(quorum.Granted), Denied: a.Votes.Count(quorum.Denied), Failed: a.Votes.Count(quorum.Failed),
			})
		}
	}
	if f := h.Acquire; f != nil {
		in.OnAcquire = func(a client.Acquisition) { f(Acquisition(a)) }
	}
	if f := h.Vote; f != nil {
		in.OnVote = func(kind client.Kind, node int, addr string, o quorum.Outcome, err error) {
			f(Vote{Kind: OpKind(kind), Node: node, Addr: addr, Outcome: Outcome(o), Err: err})
		}
	}
	node := func(f func(Node)) func(metrics.Node) {
		if f == nil {
			return nil
		}
		return func(n metrics.Node) { f(Node(n)) }
	}
	in.OnNodeUp, in.OnNodeDown, in.OnNodeQuarantined = node(h.NodeUp), node(h.NodeDown), node(h.NodeQuarantined)
}
