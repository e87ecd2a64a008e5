// Package redlock acquires, extends and releases locks on a majority of N
// independent Redis or Valkey masters, by the Redlock algorithm, over sockets of
// its own. All operations that wait are encoded once and written to all nodes; each
// is answered as soon as a quorum of nodes has voted.
//
//	client, err := redlock.New(redlock.Config{Nodes: []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"}})
//	...
//	err = client.Do(ctx, "orders:42", 10*time.Second, func(ctx context.Context) error {
//		return work(ctx) // ctx ends with the lock
//	})
//
// or, by hand,
//
//	lock, err := client.Acquire(ctx, "orders:42", 10*time.Second)
//	if err != nil {
//		return err
//	}
//	defer func() {
//		if err := lock.Release(context.WithoutCancel(ctx)); err != nil {
//			slog.Warn("lock is lost, or ends with its TTL", "error", err)
//		}
//	}()
//
// # What a lock is worth
//
// A lock is held for its validity: the TTL less the time that acquiring took and less
// an allowance for clock drift (TTL/100 + 2 ms). [Lock.Remaining] is the rest of it.
// After that another client may hold the lock. Where a process may be paused for longer,
// the resource must check a fencing token: see Config.Fenced, [Lock.Fence] and [FenceFrom].
//
// # Errors
//
// A lock that is not acquired is taken ([ErrTaken]), out of reach ([ErrNoQuorum],
// with a [QuorumError] that has the cause of each failed vote), came too late
// ([ErrExpired]) or was given up on (the context's own error; of Acquire with that of
// the last attempt, in an [AcquireError], or that alone if [Retry] limits the attempts).
// errors.Is finds all.
//
// Acquire, Extend and Release allocate nothing in steady state. A client has three
// goroutines, one more once it keeps locks alive, and one more once callers wait for a lock.
// They sleep while there is nothing to do. It has one connection to each node.
// [Client.Stats] and [Client.Nodes] tell how they fare; [Hooks] are called as it happens.
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

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/group"
	"github.com/redlock-go/redlock/quorum"
)

// Limits of what can be asked for.
const (
	MaxNodes = quorum.MaxNodes
	MaxKey   = engine.MaxKey // 4 KiB
	MinTTL   = engine.MinTTL // 10 ms
	MaxTTL   = engine.MaxTTL // 365 days
)

// Config configures a client. Only Nodes is required; a zero field means
// its default.
type Config struct {
	// Nodes are the masters, each "host:port" or a URL:
	// redis://user:password@host:port/database, rediss:// for TLS, or
	// unix:///path/to/socket; a password writes /, ?, # and % as %2F, %3F, %23
	// and %25. They must be independent of each other: not
	// replicas, not a cluster. An odd number is best; 1 to MaxNodes work.
	// A URL that ends in ?persistent=yes is of a node that forgets nothing in
	// a restart (appendonly yes, appendfsync always): see MaxTTL.
	Nodes []string
	// TLS is used for rediss:// nodes, with TLS 1.2 at least. The server name is
	// the node's host unless set here. TLSFor, where set, is called at every dial
	// with host and port: for certificates that differ between nodes, or change.
	// Nil means TLS. It must not block.
	TLS    *tls.Config
	TLSFor func(node string) *tls.Config
	// Credentials, where set, is called at every dial with host and port or the
	// socket's path. Its result replaces that of the URL and is not kept. It must
	// return when ctx ends.
	Credentials func(ctx context.Context, node string) (user, password string, err error)
	// Dialer, where set, opens the connections; network is "tcp" or "unix". It must
	// return when ctx ends. It makes the client Portable.
	// The errors of Credentials and Dialer are shown, and found by errors.Is in those
	// of nodes, unless they are of a context or of this package.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
	// MaxTTL bounds every TTL, and makes the restart guard strict. The guard
	// is the delayed restart of the algorithm's text: a master that may have
	// forgotten locks has no vote until they have expired.
	// Without MaxTTL that is a node whose run_id has changed since this client saw
	// it first, for the longest TTL that this client has used. With MaxTTL it is also
	// a node met for the first time which has not been up for MaxTTL, and both have
	// no vote for MaxTTL and drift: set the same value in every client. Nodes that do
	// not show their run_id (INFO server) are refused then, else not guarded.
	MaxTTL        time.Duration
	TrustRestarts bool // switches the restart guard off
	// NodeTimeout is how long the nodes have to answer an attempt once it is sent,
	// to within 5 ms or a quarter of itself. After it their votes have failed.
	// Default: TTL/20, at most 50 ms.
	NodeTimeout time.Duration
	Retry       Retry         // the pauses between the attempts of Acquire, and how many it makes
	DialTimeout time.Duration // bounds connecting and the handshake. Default: 1 s
	// StallTimeout is how long a connection may owe replies without sending a byte
	// of one before it is closed and dialled anew. Default: 1 s.
	StallTimeout time.Duration
	CloseTimeout time.Duration // bounds how long Close waits for work. Default: 250 ms
	MaxHold      time.Duration // bounds how long a lock is kept alive; see Lock.KeepAlive. Default: no bound
	MaxWaiting   int           // operations that wait to be sent; beyond: ErrBusy. Default: 65536
	// MaxInFlight bounds the replies that a node may owe, and MaxInFlightBytes the
	// size of their requests. What callers in line ask has a quarter more, 16 to 1024. Beyond either its vote has failed and its connection is
	// closed. A node that owes nothing is sent any batch. Defaults: 16384 and 16 MiB.
	MaxInFlight, MaxInFlightBytes int

	ClientName string // for the nodes' CLIENT LIST; none if empty
	// NoHandOver has every release go to the nodes. By default a lock that is released
	// passes on to the next caller in line in this process, without a round trip: see
	// Acquire. With NoHandOver the next caller's attempt still travels with the release
	// where its process is the first in the queue.
	NoHandOver bool
	// Holder, a short printable text such as host and process, is stored with each lock,
	// behind the token, so that people can see who holds it: see Inspect.
	Holder string
	// Fenced gives each lock a fencing token: see [Lock.Fence], and there what it needs. All
	// clients of the nodes should be fenced; a client that is not excludes others and is
	// excluded, but has no tokens. It needs MaxTTL and, once for new nodes,
	// [Client.InitFencing]. All fenced clients must have the same Nodes, by the same names, and
	// the same MaxTTL. Acquiring and extending run scripts; New returns an error that names
	// nodes which cannot, do not show their run_id, or are older than Redis 5.
	//
	// A node that restarts, or loses the tokens, has no vote for MaxTTL, and until the
	// clients that run have brought it back; so restart no other node before. IsReady and
	// the Logger say how long that is. A node with ?persistent=yes that comes back with its
	// tokens votes at once. TrustRestarts concerns the restart guard of locks alone, which
	// fenced clients need no more.
	Fenced bool
	// FenceSet is the key at which nodes keep the tokens: one sorted set with a member for
	// each key that was locked in the last hour. Default: "redlock:fence".
	FenceSet string
	// FenceClock tells the time, from which tokens are made, and is called for each attempt.
	// It need not be right: a client that is behind others makes a second attempt for keys
	// that they have had, and one that is ahead has others make it. One that reads a year
	// before 2020, or beyond 2255, is refused with ErrClock. Default: time.Now.
	FenceClock func() time.Time
	Portable   bool // no raw socket path on Linux, as elsewhere
	Scripted   bool // no DELIFEQ, DELEX and SET IFEQ where nodes have them
	// Logger gets warnings about the configuration, nodes that come up (Info), go down,
	// may evict keys or have no vote (Warn), and panics of callbacks (Error; without a
	// Logger they go to slog.Default). Operations are not logged. Default: none.
	Logger *slog.Logger
	Hooks  Hooks
	// Rand is where tokens come from. Several goroutines read it at once. Default,
	// and the only right choice outside tests: crypto/rand.
	Rand io.Reader
}

// Retry is how Acquire, AcquireAll and Do try again: the pause after an attempt, and how many
// they make. A zero field means its default.
//
// The pauses are the last resort. A caller is woken when the lock is free, and does not pause,
// as long as a node can report it (see [Client.Acquire]). The pauses apply where no node can,
// where too few nodes answer, and to calls whose Attempts are limited.
type Retry struct {
	// The pause after an attempt is random: at least Min, and at most a bound that is twice
	// Min after the first attempt, 1 ms at least, and doubles with each up to Max (jittered
	// exponential backoff). Max has to be 1 ms at least, unless Attempts is limited.
	// Defaults: 50 ms and 250 ms. Where only one is set the other follows it: Min is at most
	// a fifth of Max, Max at least Min.
	//
	// Clients that ask at the same time may split the votes so that none wins. So the
	// algorithm asks for random pauses that are well above the time in which a majority is
	// acquired. The defaults are that for nodes with round trips of up to some 10 ms; for
	// nodes that are farther away raise both. They are also those of redsync, and those of
	// the first implementation (up to 200 ms) within a factor. Among processes that pause,
	// longer pauses leave a lock idle for longer after it is freed; shorter ones cost each
	// node a command, or two, for each attempt of each of them.
	Min, Max time.Duration
	// Attempts is how many attempts a call makes before it gives up, as the retry count of
	// other libraries; 1 is one attempt without a pause behind it. Default: no limit, the
	// context alone ends the call. The error is an [AcquireError] with that of the last
	// attempt.
	//
	// An attempt is one round of asking the nodes. A caller that waits in line makes one each
	// time it is woken, and one after each pause that a client would make which polls; the
	// latter counts without a round trip while others stand before the caller. So a limit
	// bounds the time, too, by the sum of the pauses. A lock that is handed over is no attempt.
	Attempts int
}

// Format implements fmt.Formatter: no verb shows the credentials of a node.
func (cfg Config) Format(f fmt.State, verb rune) {
	type plain Config // has no Format
	cfg.Nodes = group.Redact(cfg.Nodes)
	fmt.Fprintf(f, fmt.FormatString(f, verb), plain(cfg))
}

// LogValue implements slog.LogValuer, for handlers that do not use package fmt.
func (cfg Config) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", cfg)) }

// Client holds the connections to the nodes. It is safe for concurrent use; one
// client serves a whole process.
type Client struct{ group *group.Group }

// New checks cfg, connects to the nodes and returns a client. It blocks until each
// node has answered or failed a first time, at most DialTimeout. Nodes that cannot be
// reached are no error: they vote "failed" until they are up, and Ready, Nodes and the
// Logger tell why. Two addresses of one server, a replica, a node of a cluster and a
// sentinel are errors. So is it if every node refuses for a reason that does not mend by
// itself: a wrong password, a missing permission, no scripts, another protocol; with Fenced
// a single node without permissions, scripts or run_id is one. All of these are ErrConfig.
func New(cfg Config) (*Client, error) {
	in := group.Config{
		Fenced: cfg.Fenced, FenceSet: cfg.FenceSet, FenceClock: cfg.FenceClock,
		MaxHold: cfg.MaxHold, Holder: cfg.Holder, NoHandOver: cfg.NoHandOver,
		Nodes: cfg.Nodes, Logger: cfg.Logger, Rand: cfg.Rand, Scripted: cfg.Scripted,
		Retry: group.Retry(cfg.Retry), CloseTimeout: cfg.CloseTimeout,
		Engine: engine.Config{MaxWaiting: cfg.MaxWaiting, MaxTTL: cfg.MaxTTL, Timeout: cfg.NodeTimeout},
		Conn: conn.Config{
			TLS: cfg.TLS, TLSFor: cfg.TLSFor, Credentials: cfg.Credentials, Dialer: cfg.Dialer,
			TrustRestarts: cfg.TrustRestarts, Portable: cfg.Portable,
			DialTimeout: cfg.DialTimeout, StallTimeout: cfg.StallTimeout, Name: cfg.ClientName,
			MaxInFlight: cfg.MaxInFlight, MaxInFlightBytes: cfg.MaxInFlightBytes,
		},
		QuorumError: newQuorumError, AcquireError: newAcquireError, OnLockLost: cfg.Hooks.LockLost,
	}
	cfg.Hooks.install(&in)
	g, err := group.New(in)
	if err != nil {
		return nil, err
	}
	return &Client{g}, nil
}

// Ready waits until a quorum of nodes is up and may vote: until an acquire can win. If
// ctx ends before, the error is the context's and that of IsReady.
func (c *Client) Ready(ctx context.Context) error { return c.group.Ready(ctx) }

// IsReady is Ready without waiting, for readiness probes. The error is a [QuorumError]
// that says which nodes cannot vote and why, or ErrClosed. It blocks as Stats does. Of a
// fenced client a node that may have forgotten tokens cannot vote; on a new connection it
// is asked first.
func (c *Client) IsReady() error { return c.group.IsReady() }

// InitFencing is for the first start of fenced nodes, and for an [ErrForgotten]: so many
// nodes have lost the tokens, by a restart without a disk, a flush or an eviction, that the
// others cannot know all. It gives each node that can be reached when it begins its vote, after
// MaxTTL has passed, and returns when enough nodes have one; until ctx ends it tries again, and
// then says which nodes have none, and why. If too few can be reached it says so at once: call
// it again, with the number of then. Where all nodes have their vote it returns at once.
//
// atLeast is the largest token that the resources have seen, of any key; 0 for a first start.
// All tokens that are given after the call are larger. While enough nodes know the tokens
// they are asked for them too. Else they are above what any node shows that can be reached,
// with a vote or without, and above the clock of this client. If a node shows a larger token
// than atLeast, that one counts, and the Logger is told.
//
// The order of tokens is then that of the locks if atLeast is right: read it from the
// resources when MaxTTL has passed since the nodes were lost, so that no attempt from before
// is under way. A holder from before that has not shown its token yet is refused later only
// if that token is not above atLeast and the clock of this client: stop such holders first if
// their clocks were ahead. So call InitFencing from one place, by hand or in a deployment.
// Several calls at once do no harm.
func (c *Client) InitFencing(ctx context.Context, atLeast uint64) error {
	return c.group.InitFencing(ctx, atLeast)
}

// Close refuses new operations, waits up to CloseTimeout for those under way and for
// releases in the background, and frees everything. Locks stay held until their TTL
// ends. It always returns nil.
func (c *Client) Close() error {
	c.group.Close()
	return nil
}

// TryAcquire makes one attempt to acquire the lock on key for ttl. It blocks for
// one round trip to the nodes, at most for NodeTimeout once they are asked, or
// until ctx ends. If it fails, the keys that some nodes may have set are released
// in the background.
//
// The end of ctx is noticed within 5 ms, later if more than 2048 operations wait to
// be sent; a nil ctx has no end. The Redis key is key as it is, 1 to MaxKey bytes; ttl
// is MinTTL to MaxTTL, rounded down to whole milliseconds. The errors are ErrTaken,
// ErrNoQuorum, ErrExpired, ErrBusy, ErrClosed, ErrArgument and ctx.Err(). While callers of
// Acquire wait for key in this client, it is ErrTaken without a round trip, but for the gaps
// that they leave for others (see [Client.Acquire]).
func (c *Client) TryAcquire(ctx context.Context, key string, ttl time.Duration) (Lock, error) {
	h, err := c.group.TryAcquire(ctx, key, ttl)
	return Lock{h}, err
}

// Acquire waits for the lock on key, until ctx ends or the attempts that [Retry] allows are
// used up. Close ends all waits at once.
//
// Callers of one client that wait for the same key stand in line, first in, first out. The
// first alone asks the nodes. The processes that wait for a key queue up on one node, the
// same one for all that name the nodes alike in Config.Nodes, and take turns. Nodes tell the
// first of the queue when the lock is freed (client tracking of RESP3); if its holder has
// died, the first asks when the lock's TTL is over there. Without the permissions for the
// queue processes are woken in no order. Without those for tracking, or without RESP3, they
// ask again with the pauses of Retry. Package conn lists the permissions.
//
// A lock that a caller of the client releases passes on to the first in line without a round
// trip: the nodes see one long hold. It does so 63 times in a row at most, while 7/8 of ttl
// are left, and if other processes wait, once for each caller that stood in line when the
// nodes granted it. A lock whose Token was asked for does not pass on, nor does any with
// NoHandOver.
//
// Whatever nodes and queues say, a process that waits asks a quorum itself about once a
// second for each key (250 times a second at most in all): a lock that is free is granted. A
// lock that is wanted without a break is left free for 255 ms every 2.9 s, so that those who
// poll (other libraries, TryAcquire, clients that name the nodes otherwise) get it, too.
//
// None of this decides who holds a lock: the votes of the nodes do.
//
// With a context that has no end, and no limit of attempts, it may wait for ever. When ctx
// ends the error is an [AcquireError], which is both the context's error and that of the
// last attempt; when the attempts are used up it is that of the last attempt.
func (c *Client) Acquire(ctx context.Context, key string, ttl time.Duration) (Lock, error) {
	h, err := c.group.Acquire(ctx, key, ttl)
	return Lock{h}, err
}

// AcquireAll is Acquire for several keys, 1 to 64, all or nothing: in one round trip,
// and in an order that is the same for all clients. They become one lock with one token,
// which is extended, kept alive and released as one. A quorum is needed for each key. An
// attempt that one key refuses leaves nothing behind. A key that is given twice is an
// error, and so are more keys than Config.MaxWaiting. It stands in line for each key that is
// taken, in the order of the keys, and is handed no lock. It allocates.
func (c *Client) AcquireAll(ctx context.Context, ttl time.Duration, keys ...string) (Lock, error) {
	h, err := c.group.AcquireAll(ctx, ttl, keys, false)
	return Lock{h}, err
}

// TryAcquireAll is AcquireAll with one attempt.
func (c *Client) TryAcquireAll(ctx context.Context, ttl time.Duration, keys ...string) (Lock, error) {
	h, err := c.group.AcquireAll(ctx, ttl, keys, true)
	return Lock{h}, err
}

// Do acquires the lock on key as Acquire does, calls f with a context that ends with the
// lock as that of [Lock.KeepAlive] does, and releases the lock in every case, a panic of
// f included. It returns the error of Acquire, or that of f joined with the cause of a
// loss (errors.Join). A release whose result is unknown is no error. ttl is 30 ms at
// least.
func (c *Client) Do(ctx context.Context, key string, ttl time.Duration, f func(ctx context.Context) error) error {
	return c.group.Do(ctx, key, ttl, false, f)
}

// TryDo is Do with one attempt, as TryAcquire makes it: for handlers that have something
// else to say where the lock is taken, and for work that one process does while the others
// skip it. f was not called if the error is ErrTaken, unless f returns that itself.
func (c *Client) TryDo(ctx context.Context, key string, ttl time.Duration, f func(ctx context.Context) error) error {
	return c.group.Do(ctx, key, ttl, true, f)
}

// Attach returns a handle on a lock that was acquired elsewhere: by another process or
// client library, whose token it takes, 22 to 256 bytes. A quorum of nodes must show the
// token, as [Client.Inspect] sees it; the validity is what validUntil leaves, and what
// the nodes show at most. The errors are ErrNotHeld, ErrNoQuorum, ErrExpired, ctx.Err()
// and those of a wrong argument. To be kept alive the lock takes the TTL that was left.
// Attach blocks for one round trip to all nodes, at most for NodeTimeout.
func (c *Client) Attach(ctx context.Context, key, token string, validUntil time.Time) (Lock, error) {
	h, err := c.group.Attach(ctx, key, token, validUntil)
	return Lock{h}, err
}
