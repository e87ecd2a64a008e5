// Package redlock takes, extends and gives back locks on a majority of N
// independent Redis or Valkey masters, by the Redlock algorithm, over sockets
// of its own: everything that waits is encoded once, written to all nodes, and
// answered as soon as a quorum of them has voted.
//
//	client, err := redlock.New(redlock.Config{Nodes: []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"}})
//	...
//	lock, err := client.Acquire(ctx, "orders:42", 10*time.Second)
//	if err != nil {
//		return err
//	}
//	defer lock.Release(ctx)
//
// # What a lock is worth
//
// A lock is held for its validity: the TTL less the time that acquiring took
// and less an allowance for clock drift (TTL/100 + 2 ms). [Lock.Remaining] tells
// what is left of it. After that another client may hold it, whatever this one
// believes; a process that may be paused for longer needs a fencing token at
// the resource, which Redlock does not provide.
//
// # Errors
//
// A lock that is not acquired is taken ([ErrTaken]), out of reach
// ([ErrNoQuorum], with a [QuorumError] that says what each node did), came too
// late ([ErrExpired]) or was given up on (the context's own error). All are
// found with errors.Is.
//
// Acquire, Extend and Release allocate nothing in steady state. A client has two
// goroutines of its own, asleep while nothing is asked of it, and one connection
// to each node, which all goroutines of the process share.
//
// [Client.Stats] and [Client.Nodes] tell how operations end and how the nodes are;
// [Hooks] hear of it when it happens.
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
	"github.com/redlock-go/redlock/internal/session"
	"github.com/redlock-go/redlock/internal/token"
	"github.com/redlock-go/redlock/quorum"
)

// Limits of what can be asked for.
const (
	MaxNodes = quorum.MaxNodes
	MaxKey   = engine.MaxKey // 4 KiB
	MinTTL   = engine.MinTTL // 10 ms
	MaxTTL   = engine.MaxTTL // 365 days
)

// What can become of an operation, for errors.Is. A context's own error is
// returned as it is.
var (
	ErrTaken = engine.ErrTaken // enough nodes answered: another holder has it
	// ErrNoQuorum: too few nodes answered. After an Extend the lock is still
	// held for what Remaining says; after a Release its key may be left.
	ErrNoQuorum = engine.ErrNoQuorum
	// ErrExpired: the votes came so late that no validity was left, or the
	// lock to extend had none.
	ErrExpired = engine.ErrExpired
	// ErrNotHeld: the lock has been released, has expired on the nodes, or is
	// another holder's.
	ErrNotHeld = engine.ErrNotHeld
	ErrClosed  = engine.ErrClosed // the client is closed
	ErrBusy    = engine.ErrBusy   // Config.MaxWaiting operations wait already
)

// QuorumError is an ErrNoQuorum with the votes up to the verdict, for errors.As.
// It wraps a NodeError for each node whose vote failed.
type QuorumError = quorum.RoundError

// NodeError says which node failed, and why.
type NodeError = quorum.NodeError

// Config says where the nodes are and how to treat them. Only Nodes is needed;
// a zero field means its default.
type Config struct {
	// Nodes are the masters, each "host:port" or a URL:
	// redis://user:password@host:port/database, rediss:// for TLS, or
	// unix:///path/to/socket. They must be independent of each other: not
	// replicas, not a cluster. An odd number is best; 1 to MaxNodes work.
	//
	// A URL that ends in ?persistent=yes is of a node that forgets nothing in
	// a restart (appendonly yes, appendfsync always): see MaxTTL.
	Nodes []string
	// TLS is used for rediss:// nodes. At least TLS 1.2 is spoken, and the
	// server name is the node's host unless set here. TLSFor, where set, is
	// asked at every dial, by host and port: for certificates that differ
	// between nodes, or change. Nil means TLS. It must not block.
	TLS    *tls.Config
	TLSFor func(node string) *tls.Config
	// Credentials, where set, is asked at every dial, by host and port or the
	// socket's path, and wins over what the URL says. It must return when ctx
	// ends. What it returns is not kept.
	Credentials func(ctx context.Context, node string) (user, password string, err error)
	// Dialer, where set, opens the connections; network is "tcp" or "unix".
	// It must return when ctx ends. It makes the client Portable.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
	// MaxTTL bounds every TTL, and makes the restart guard strict. The guard
	// is the delayed restart of the algorithm's text: a master that may have
	// forgotten locks has no vote until they have expired.
	//
	// Without MaxTTL that is a node whose run_id has changed since this client
	// saw it first, for the longest TTL that this client has used. With it, it
	// is also a node met for the first time which has not been up for MaxTTL,
	// and in both cases the time is MaxTTL and drift: set it to the same value
	// in every client. Nodes that do not tell their run_id (INFO server) are
	// refused then; without MaxTTL nobody notices their restarts.
	MaxTTL time.Duration
	// TrustRestarts switches the restart guard off.
	TrustRestarts bool
	// NodeTimeout is how long the nodes have to answer once asked, for each
	// attempt. Those that have not are counted as failed. Default: TTL/20,
	// at most 50 ms. It is kept to within 5 ms, or a quarter of itself.
	NodeTimeout time.Duration
	// RetryMin and RetryMax bound the random pause between the attempts of
	// Acquire. Defaults: 50 ms and 250 ms.
	RetryMin, RetryMax time.Duration
	// DialTimeout bounds connecting and the handshake. Default: 1 s.
	DialTimeout time.Duration
	// StallTimeout is how long a connection may owe replies without sending
	// a byte before it is closed and dialled anew. Default: 1 s.
	StallTimeout time.Duration
	// CloseTimeout bounds how long Close waits for work. Default: 250 ms.
	CloseTimeout time.Duration
	// MaxWaiting bounds the operations that wait to be sent; beyond it there
	// is ErrBusy. Default: 65536.
	MaxWaiting int
	// MaxInFlight bounds the replies that a node may owe, and MaxInFlightBytes
	// the requests that it owes them for: beyond either, its vote is "failed" at
	// once and its connection is closed. A node that owes nothing is sent any
	// batch. Defaults: 16384 and 16 MiB.
	MaxInFlight, MaxInFlightBytes int

	ClientName string // for the nodes' CLIENT LIST; none if empty
	Portable   bool   // no raw socket path on Linux, as elsewhere
	Scripted   bool   // no DELIFEQ, DELEX and SET IFEQ where nodes have them
	// Logger hears warnings about the configuration, of nodes that come up
	// (Info), go down, may evict keys or have no vote, and why (Warn): nothing
	// for an operation. A callback that panics is logged too (Error), with its
	// stack; and without a Logger to slog.Default. Default: none.
	Logger *slog.Logger
	Hooks  Hooks // what else to call, and when; see there
	// Rand is where tokens come from. It is read by several goroutines at once.
	// Default, and the only right choice outside tests: crypto/rand.
	Rand io.Reader
}

// Format implements fmt.Formatter: no verb shows the credentials of a node.
func (cfg Config) Format(f fmt.State, verb rune) {
	type plain Config // has no Format
	cfg.Nodes = session.Redact(cfg.Nodes)
	fmt.Fprintf(f, fmt.FormatString(f, verb), plain(cfg))
}

// LogValue implements slog.LogValuer, for handlers that do not use package fmt.
func (cfg Config) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", cfg)) }

// Hooks are functions to be called, each optional. They may be called by several
// goroutines at once, and may use the client.
//
// Attempt and LockLost are called by the goroutine whose call it was, before
// the call returns; it is that call which a panic ends. The others, and Attempt
// for an [Op], are called a moment later by a goroutine of the client, which calls
// Op.Done too: one that blocks delays the others, by 20 ms at most. A panic there
// is recovered and logged.
type Hooks struct {
	// Attempt hears of each attempt that is over, as Stats counts them. It
	// allocates the Key for an Op, and nothing else.
	Attempt func(Attempt)
	// Vote hears of each vote of each node, on releases in the background too.
	// While it blocks, 65,536 votes are kept, and those beyond are not told.
	Vote func(Vote)
	// NodeUp hears of a connection that came up, NodeDown of one that ended, or
	// that New could not make. Close does not call NodeDown.
	NodeUp, NodeDown func(Node)
	// NodeGuarded hears of a node that must not vote for Node.Guarded.
	NodeGuarded func(Node)
	// LockLost hears once of a lock that is gone before it was given back:
	// Extend or Release found it so (ErrNotHeld), or Extend came after its end
	// (ErrExpired). Who uses an Op sees to it there.
	LockLost func(key string, err error)
}

// Attempt is an attempt that is over, with the votes up to its verdict. There
// are none if it was given up, or ended before anybody was asked.
type Attempt struct {
	Kind                    OpKind
	Key                     string
	Duration                time.Duration // from before it was queued
	Granted, Denied, Failed int           // nodes
	Err                     error         // what the call returns; nil is won
}

// Vote is the vote of one node on one operation.
type Vote struct {
	Kind    OpKind
	Node    int    // its index
	Addr    string // without credentials
	Outcome quorum.Outcome
	Err     error // why it failed; nil for the other outcomes
}

// inner is the same for package session, which cannot name the types here.
func (h Hooks) inner() session.Hooks {
	in := session.Hooks{NodeUp: h.NodeUp, NodeDown: h.NodeDown, NodeGuarded: h.NodeGuarded, LockLost: h.LockLost}
	if h.Attempt != nil {
		in.Attempt = func(a session.Attempt) { h.Attempt(Attempt(a)) }
	}
	if h.Vote != nil {
		in.Vote = func(v session.Vote) { h.Vote(Vote(v)) }
	}
	return in
}

// Client holds the connections to the nodes. It is safe for concurrent use; one
// client serves a whole process.
type Client struct{ session *session.Session }

// New checks cfg, connects to the nodes and returns a client. It blocks until
// each node has answered or failed a first time, at most DialTimeout. Nodes that
// cannot be reached are no error: they are dialled in the background from then
// on, and vote "failed" until they are there. Two addresses of the same server,
// a replica, a node of a cluster and a sentinel are errors.
func New(cfg Config) (*Client, error) {
	s, err := session.Open(session.Config{
		Nodes:        cfg.Nodes,
		NodeTimeout:  cfg.NodeTimeout,
		RetryMin:     cfg.RetryMin,
		RetryMax:     cfg.RetryMax,
		CloseTimeout: cfg.CloseTimeout,
		MaxWaiting:   cfg.MaxWaiting,
		MaxTTL:       cfg.MaxTTL,
		Logger:       cfg.Logger,
		Hooks:        cfg.Hooks.inner(),
		Rand:         cfg.Rand,
		Scripted:     cfg.Scripted,
		Conn: conn.Config{
			TLS:              cfg.TLS,
			TLSFor:           cfg.TLSFor,
			Credentials:      cfg.Credentials,
			Dialer:           cfg.Dialer,
			TrustRestarts:    cfg.TrustRestarts,
			Portable:         cfg.Portable,
			DialTimeout:      cfg.DialTimeout,
			StallTimeout:     cfg.StallTimeout,
			MaxInFlight:      cfg.MaxInFlight,
			MaxInFlightBytes: cfg.MaxInFlightBytes,
			Name:             cfg.ClientName,
			Logger:           cfg.Logger,
		},
	})
	if err != nil {
		return nil, err
	}
	return &Client{s}, nil
}

// Close refuses new operations, waits up to CloseTimeout for those under way,
// the releases that nobody waits for among them, and frees everything. Locks
// that are held stay held until their TTL ends. It always returns nil.
func (c *Client) Close() error {
	c.session.Close()
	return nil
}

// TryAcquire makes one attempt to acquire the lock on key for ttl. It blocks for
// one round trip to the nodes, at most for NodeTimeout once they are asked, or
// until ctx ends. Whenever it fails, what may have been set on some nodes is
// released in the background.
//
// The end of ctx is noticed within 5 ms, later if more than 2048 operations wait to
// be sent; a nil ctx has no end. A key is 1 to MaxKey bytes, the Redis
// key as it is; ttl is MinTTL to MaxTTL, rounded down to whole milliseconds. The
// errors are ErrTaken, ErrNoQuorum, ErrExpired, ErrBusy, ErrClosed, ctx.Err(),
// and what is wrong with key or ttl.
func (c *Client) TryAcquire(ctx context.Context, key string, ttl time.Duration) (Lock, error) {
	hold, err := c.session.TryAcquire(ctx, key, ttl)
	return Lock{hold}, err
}

// Acquire is TryAcquire, over and over while the lock is taken or too few nodes
// answer, with a random pause between RetryMin and RetryMax after each attempt,
// until ctx ends. A context without an end makes it wait for ever.
func (c *Client) Acquire(ctx context.Context, key string, ttl time.Duration) (Lock, error) {
	hold, err := c.session.Acquire(ctx, key, ttl)
	return Lock{hold}, err
}

// Stats returns what was counted since New, and how the nodes are, all of one
// moment. It waits for the goroutine that is at the sockets, for microseconds,
// or for up to 5 ms if that waits there for its own replies; it allocates
// Stats.Nodes. Hooks and Op.Done may call it.
func (c *Client) Stats() Stats {
	nodes := make([]NodeStats, 0, c.session.Len())
	s := c.session.Stats(func(n Node, v engine.Votes) {
		nodes = append(nodes, NodeStats{n, v[quorum.Granted], v[quorum.Denied], v[quorum.Failed]})
	})
	return Stats{
		Results(s.Acquire), Results(s.Extend), Results(s.Release),
		s.Cleanups, s.Batches, s.Operations, s.Waiting, s.InFlight, nodes,
	}
}

// Nodes returns how the nodes are, in the order of Config.Nodes. It waits and
// allocates as Stats does.
func (c *Client) Nodes() []Node {
	nodes := make([]Node, 0, c.session.Len())
	c.session.Stats(func(n Node, _ engine.Votes) { nodes = append(nodes, n) })
	return nodes
}

// Stats is what a client has counted since New. It counts attempts: an Acquire
// that tries three times is counted three times.
type Stats struct {
	Acquire, Extend, Release Results

	// Cleanups are the releases that nobody waits for, behind acquires that
	// did not become a lock. They are not counted in Release.
	Cleanups   uint64
	Batches    uint64 // writes, each to all nodes
	Operations uint64 // in those batches, cleanups among them
	Waiting    int    // operations to be sent, about Config.MaxWaiting and the cleanups at most
	InFlight   int    // operations sent and without a verdict
	Nodes      []NodeStats
}

// Results is how the attempts at one kind of operation have ended. Each is
// counted once; those with wrong arguments, a context that had ended before or
// a Lock that was released are none.
type Results struct {
	Won       uint64
	Denied    uint64 // ErrTaken or ErrNotHeld
	NoQuorum  uint64
	Expired   uint64
	Cancelled uint64 // the context's error, or Cancel
	Refused   uint64 // ErrBusy or ErrClosed
}

// NodeStats is a node, and its votes on all operations that were sent. A node
// that is down or too late has failed.
type NodeStats struct {
	Node
	Granted, Denied, Failed uint64
}

// Node is how a node is at one moment.
type Node = conn.Node

// Lock is a handle on a lock that was acquired. It is a small value: copies are
// handles on the same lock. It is safe for concurrent use. Once the lock is
// released all its handles are dead and say ErrNotHeld; so does the zero Lock.
type Lock struct{ hold session.Hold }

// Key returns the locked key, or "" if the lock was released.
func (l Lock) Key() string { return l.hold.Key() }

// Token returns the value stored at the key, which proves who holds it, or "" if
// the lock was released. It allocates. Whoever knows it can release the lock.
func (l Lock) Token() string { return l.hold.Token() }

// Remaining returns how much validity is left, recomputed on each call, or 0.
// It neither blocks nor allocates nor asks the nodes.
func (l Lock) Remaining() time.Duration { return l.hold.Remaining() }

// Extend gives the lock a new ttl, counted from now. It succeeds only if a
// quorum of nodes still held the lock and extended it; it never takes a lock
// again that was lost. A lock without validity is not extended: ErrExpired.
//
// After ErrNoQuorum or the context's error the lock is held for what Remaining
// says, which never counts on an extension that was not confirmed. After
// ErrNotHeld it is lost. Extend blocks as TryAcquire does.
func (l Lock) Extend(ctx context.Context, ttl time.Duration) error { return l.hold.Extend(ctx, ttl) }

// Release gives the lock back on all nodes, also if its validity is over. It
// blocks until a quorum has answered, as TryAcquire does; with a context that
// has ended the release is sent all the same and not waited for.
//
// There are three results: nil, released; ErrNotHeld, a quorum had lost it
// before; and any other error, unknown: the lock ends with its TTL at the
// latest, and Release may be called again. Validity ends when Release is called,
// whatever its result, except with ErrBusy and ErrClosed where no node was asked.
func (l Lock) Release(ctx context.Context) error { return l.hold.Release(ctx) }

// OpKind is what an operation asks for, an [Op] or a blocking call.
type OpKind = engine.Kind

// The kinds of operations. Their String is "acquire", "extend" and "release".
const (
	OpAcquire = engine.Acquire
	OpExtend  = engine.Extend
	OpRelease = engine.Release
)

// Op is an operation for those who have an event loop of their own: it belongs
// to its caller, is submitted without blocking, and is completed by a callback.
// It must not be touched from Submit to Done, or to a Cancel that returned true;
// then it can be used again, and allocates nothing.
type Op struct {
	Kind  OpKind
	Key   []byte           // 1 to MaxKey bytes
	TTL   time.Duration    // of OpAcquire and OpExtend
	Token [token.Size]byte // set by Submit for OpAcquire, by the caller for the others
	// Done is called once, from a goroutine of the client, without a lock: it may
	// use the client, and Submit this Op again. One is called at a time, but one
	// that takes more than 20 ms does not hold up the others any longer. A panic
	// is recovered and logged.
	Done func(*Op)

	session *session.Session
	op      engine.Op
}

// Submit begins op. It does not block and does not allocate. With an error, for
// what is wrong with op or ErrBusy or ErrClosed, Done is not called. Done may be
// called before Submit returns.
func (c *Client) Submit(op *Op) error {
	if op.Kind == OpAcquire {
		if err := c.session.Mint((*token.Token)(&op.Token)); err != nil {
			return err
		}
	}
	e := &op.op
	if op.session != c.session || op.Token != [token.Size]byte(e.Token) {
		e.Absent = 0 // it was of another lock
	}
	e.Kind, e.Key, e.TTL, e.Token = op.Kind, op.Key, op.TTL, op.Token
	if e.Done = nil; op.Done != nil {
		e.Done = (*completion)(op)
	}
	op.session = c.session
	return c.session.Submit(e)
}

// Cancel takes op back. It returns false if it is too late: Done was called or
// is about to be; or if op was not submitted to this client. An acquire that was
// sent is released in the background.
func (c *Client) Cancel(op *Op) bool { return op.session == c.session && c.session.Cancel(&op.op) }

// Err returns what TryAcquire, Extend or Release would have. Valid from Done on.
func (op *Op) Err() error {
	if op.op.Err == nil {
		return nil
	}
	return op.session.Explain(&op.op)
}

// Remaining returns how much validity is left after an OpAcquire or OpExtend
// without an error, else 0. A lock of which nothing is left must be released.
func (op *Op) Remaining() time.Duration {
	if op.session == nil || op.op.Err != nil {
		return 0
	}
	return op.session.Left(op.op.Until)
}

// completion hides Complete from the users of Op.
type completion Op

func (op *completion) Complete(e *engine.Op) {
	defer op.Done((*Op)(op)) // also behind a hook that panics
	op.session.Completed(e)
}
