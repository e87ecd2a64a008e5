// Package redlock acquires, extends and releases locks on a majority of N
// independent Redis or Valkey masters, by the Redlock algorithm, over sockets of
// its own. All operations that wait are encoded once and written to all nodes; each
// is answered as soon as a quorum of nodes has voted.
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
// A lock is held for its validity: the TTL less the time that acquiring took and less
// an allowance for clock drift (TTL/100 + 2 ms). [Lock.Remaining] is the rest of it.
// After that another client may hold the lock. A process that may be paused for longer
// needs a fencing token at the resource, which Redlock does not provide.
//
// # Errors
//
// A lock that is not acquired is taken ([ErrTaken]), out of reach ([ErrNoQuorum],
// with a [QuorumError] that has the cause of each failed vote), came too late
// ([ErrExpired]) or was given up on (the context's own error). errors.Is finds all.
//
// Acquire, Extend and Release allocate nothing in steady state. A client has three
// goroutines, which sleep while it is idle, and one connection to each node.
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
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/group"
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

// The results of an operation, for errors.Is. A context's error is returned as it is.
var (
	ErrTaken = engine.ErrTaken // enough nodes answered: another holder has it
	// Too few nodes answered. After an Extend the lock is still held for what
	// Remaining says; after a Release its key may be left.
	ErrNoQuorum = engine.ErrNoQuorum
	ErrExpired  = engine.ErrExpired // no validity was left when the votes came, or to extend
	ErrNotHeld  = engine.ErrNotHeld // released, expired on the nodes, or another holder's
	ErrClosed   = engine.ErrClosed  // the client is closed
	ErrBusy     = engine.ErrBusy    // Config.MaxWaiting operations wait already
)

// QuorumError is an ErrNoQuorum with the votes up to the verdict, for errors.As.
// It wraps Cause and each NodeError of Failed.
type QuorumError struct {
	Cause                  error // ErrNoQuorum
	Nodes, Granted, Denied int   // numbers of nodes
	Failed                 []NodeError
}

// Error counts the votes and says for each failed one why.
func (e *QuorumError) Error() string {
	text := fmt.Sprintf("%v: of %d nodes %d granted, %d denied, %d failed", e.Cause, e.Nodes, e.Granted, e.Denied, len(e.Failed))
	for _, f := range e.Failed {
		text += "; " + f.Error()
	}
	return text
}

// Unwrap returns Cause and Failed, for errors.Is and errors.As.
func (e *QuorumError) Unwrap() []error {
	errs := []error{e.Cause}
	for _, f := range e.Failed {
		errs = append(errs, f)
	}
	return errs
}

// NodeError says which node failed, and why.
type NodeError struct {
	Node int    // its index in Config.Nodes
	Addr string // without credentials
	Err  error
}

// Error names the node and the cause.
func (e NodeError) Error() string { return fmt.Sprintf("node %d (%s): %v", e.Node, e.Addr, e.Err) }

// Unwrap returns Err.
func (e NodeError) Unwrap() error { return e.Err }

// Config is what a client needs to know. Only Nodes is required; a zero field means
// its default.
type Config struct {
	// Nodes are the masters, each "host:port" or a URL:
	// redis://user:password@host:port/database, rediss:// for TLS, or
	// unix:///path/to/socket. They must be independent of each other: not
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
	// RetryMin and RetryMax bound the random pause between the attempts of
	// Acquire. Defaults: 50 ms and 250 ms.
	RetryMin, RetryMax time.Duration
	DialTimeout        time.Duration // bounds connecting and the handshake. Default: 1 s
	// StallTimeout is how long a connection may owe replies without sending a byte
	// before it is closed and dialled anew. Default: 1 s.
	StallTimeout time.Duration
	CloseTimeout time.Duration // bounds how long Close waits for work. Default: 250 ms
	MaxWaiting   int           // operations that wait to be sent; beyond: ErrBusy. Default: 65536
	// MaxInFlight bounds the replies that a node may owe, and MaxInFlightBytes the
	// size of their requests. Beyond either its vote has failed and its connection is
	// closed. A node that owes nothing is sent any batch. Defaults: 16384 and 16 MiB.
	MaxInFlight, MaxInFlightBytes int

	ClientName string // for the nodes' CLIENT LIST; none if empty
	Portable   bool   // no raw socket path on Linux, as elsewhere
	Scripted   bool   // no DELIFEQ, DELEX and SET IFEQ where nodes have them
	// Logger gets warnings about the configuration, nodes that come up (Info), go down,
	// may evict keys or have no vote (Warn), and panics of callbacks (Error; without a
	// Logger they go to slog.Default). Operations are not logged. Default: none.
	Logger *slog.Logger
	Hooks  Hooks
	// Rand is where tokens come from. Several goroutines read it at once. Default,
	// and the only right choice outside tests: crypto/rand.
	Rand io.Reader
}

// Format implements fmt.Formatter: no verb shows the credentials of a node.
func (cfg Config) Format(f fmt.State, verb rune) {
	type plain Config // has no Format
	cfg.Nodes = group.Redact(cfg.Nodes)
	fmt.Fprintf(f, fmt.FormatString(f, verb), plain(cfg))
}

// LogValue implements slog.LogValuer, for handlers that do not use package fmt.
func (cfg Config) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", cfg)) }

// Hooks are functions to be called, each optional. Several goroutines may call them
// at once, and they may use the client.
//
// Attempt and LockLost are called by the goroutine that called the client, before its
// call returns; a panic goes to that caller. The others, and Attempt for an [Op], are
// called a moment later by a goroutine of the client, as Op.Done is: one that blocks
// delays the others by 20 ms at most. A panic there is recovered and logged.
type Hooks struct {
	// Attempt is called for each attempt that Stats counts. An Op's Key is allocated.
	Attempt func(Attempt)
	// Vote is called for each vote of each node, also on releases in the background.
	// While it blocks, 65,536 votes are kept; those beyond are dropped.
	Vote func(Vote)
	// NodeUp is called when a connection came up, NodeDown when one ended, or New
	// could not make it. Close does not call NodeDown.
	NodeUp, NodeDown func(Node)
	NodeGuarded      func(Node) // is called for a node that must not vote for Node.Guarded
	// LockLost is called once for a lock that was gone before it was released:
	// Extend or Release found it so (ErrNotHeld), or Extend came after its end
	// (ErrExpired). It is not called for an Op.
	LockLost func(key string, err error)
}

// Attempt is an attempt that is over, with the votes up to its verdict. There are
// none if it was given up, or ended before a node was asked.
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
	Outcome Outcome
	Err     error // why it failed; nil for the other outcomes
}

// Outcome is how a node voted. Its String is "granted", "denied" or "failed".
type Outcome uint8

// The outcomes of a vote.
const (
	Granted Outcome = 1 + iota // the node did as asked
	Denied                     // the key is another holder's, or gone
	Failed                     // no usable answer: the node may have done it, or not
)

func (o Outcome) String() string { return quorum.Outcome(o).String() }

// Client holds the connections to the nodes. It is safe for concurrent use; one
// client serves a whole process.
type Client struct{ group *group.Group }

// New checks cfg, connects to the nodes and returns a client. It blocks until each
// node has answered or failed a first time, at most DialTimeout. Nodes that cannot be
// reached are no error: they vote "failed" until they are up. Two addresses of one
// server, a replica, a node of a cluster and a sentinel are errors.
func New(cfg Config) (*Client, error) {
	in := group.Config{
		Nodes: cfg.Nodes, Logger: cfg.Logger, Rand: cfg.Rand, Scripted: cfg.Scripted,
		RetryMin: cfg.RetryMin, RetryMax: cfg.RetryMax, CloseTimeout: cfg.CloseTimeout,
		Engine: engine.Config{MaxWaiting: cfg.MaxWaiting, MaxTTL: cfg.MaxTTL, Timeout: cfg.NodeTimeout},
		Conn: conn.Config{
			TLS: cfg.TLS, TLSFor: cfg.TLSFor, Credentials: cfg.Credentials, Dialer: cfg.Dialer,
			TrustRestarts: cfg.TrustRestarts, Portable: cfg.Portable,
			DialTimeout: cfg.DialTimeout, StallTimeout: cfg.StallTimeout, Name: cfg.ClientName,
			MaxInFlight: cfg.MaxInFlight, MaxInFlightBytes: cfg.MaxInFlightBytes,
		},
		QuorumError: newQuorumError, OnLockLost: cfg.Hooks.LockLost,
	}
	cfg.Hooks.install(&in)
	g, err := group.New(in)
	if err != nil {
		return nil, err
	}
	return &Client{g}, nil
}

// install has a group call h, with the types of this package.
func (h Hooks) install(in *group.Config) {
	if f := h.Attempt; f != nil {
		in.OnAttempt = func(kind engine.Kind, key string, took time.Duration, t quorum.Tally, err error) {
			f(Attempt{OpKind(kind), key, took, t.Granted(), t.Denied(), t.Failed(), err})
		}
	}
	if f := h.Vote; f != nil {
		in.OnVote = func(kind engine.Kind, node int, addr string, o quorum.Outcome, err error) {
			f(Vote{OpKind(kind), node, addr, Outcome(o), err})
		}
	}
	node := func(f func(Node)) func(conn.Node) {
		if f == nil {
			return nil
		}
		return func(n conn.Node) { f(newNode(n)) }
	}
	in.OnNodeUp, in.OnNodeDown, in.OnNodeGuarded = node(h.NodeUp), node(h.NodeDown), node(h.NodeGuarded)
}

func newQuorumError(g *group.Group, op *engine.Op) error {
	e := &QuorumError{Cause: op.Err, Nodes: g.Len(), Granted: op.Tally.Granted(), Denied: op.Tally.Denied()}
	for _, f := range op.Failures {
		e.Failed = append(e.Failed, NodeError{f.Node, g.Addr(f.Node), f.Err})
	}
	return e
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
// ErrNoQuorum, ErrExpired, ErrBusy, ErrClosed, ctx.Err(), and those of a wrong argument.
func (c *Client) TryAcquire(ctx context.Context, key string, ttl time.Duration) (Lock, error) {
	h, err := c.group.TryAcquire(ctx, key, ttl)
	return Lock{h}, err
}

// Acquire repeats TryAcquire while the lock is taken or too few nodes answer, with
// a random pause between RetryMin and RetryMax after each attempt, until ctx ends.
// With a context that has no end it may wait for ever.
func (c *Client) Acquire(ctx context.Context, key string, ttl time.Duration) (Lock, error) {
	h, err := c.group.Acquire(ctx, key, ttl)
	return Lock{h}, err
}

// Stats returns the counts since New and the state of the nodes, all of one moment.
// It blocks while another goroutine is at the sockets: for microseconds, or up to 5 ms
// if that one waits for its own replies. It allocates Stats.Nodes. Callbacks may call it.
func (c *Client) Stats() Stats {
	nodes := make([]NodeStats, 0, c.group.Len())
	s := c.group.Stats(func(n conn.Node, v engine.Votes) {
		nodes = append(nodes, NodeStats{newNode(n), v[quorum.Granted], v[quorum.Denied], v[quorum.Failed]})
	})
	return Stats{
		Results(s.Acquire), Results(s.Extend), Results(s.Release),
		s.Cleanups, s.Batches, s.Operations, s.Waiting, s.InFlight, nodes,
	}
}

// Nodes returns the state of the nodes, in the order of Config.Nodes. It blocks and
// allocates as Stats does.
func (c *Client) Nodes() []Node {
	nodes := make([]Node, 0, c.group.Len())
	c.group.Stats(func(n conn.Node, _ engine.Votes) { nodes = append(nodes, newNode(n)) })
	return nodes
}

// Stats is what a client has counted since New. It counts attempts: an Acquire
// that tries three times is counted three times.
type Stats struct {
	Acquire, Extend, Release Results

	Cleanups   uint64 // releases behind acquires that failed; not counted in Release
	Batches    uint64 // writes, each to all nodes
	Operations uint64 // in those batches, cleanups among them
	Waiting    int    // operations to be sent, about Config.MaxWaiting and the cleanups at most
	InFlight   int    // operations sent and without a verdict
	Nodes      []NodeStats
}

// Results is how the attempts at one kind of operation have ended. Each is counted
// once. A call with wrong arguments, an ended context or a released Lock is none.
type Results struct {
	Won       uint64
	Denied    uint64 // ErrTaken or ErrNotHeld
	NoQuorum  uint64
	Expired   uint64
	Cancelled uint64 // the context's error, or Cancel
	Refused   uint64 // ErrBusy or ErrClosed
}

// NodeStats is a node and its votes on all operations that were sent. The votes of a
// node that is down or too late have failed.
type NodeStats struct {
	Node
	Granted, Denied, Failed uint64
}

// Node is how a node is at one moment.
type Node struct {
	Index int    // its place in Config.Nodes, from 0
	Addr  string // without credentials
	Up    bool   // it has a connection
	Err   error  // why it has none, a *conn.Error; nil while up; never a credential

	Guarded time.Duration // how long it still must not vote; 0 if it may
	// Server is the product and version that the server showed, or "". Dialect is
	// the commands that release and extend a lock there: "EVALSHA", or "DELIFEQ,
	// SET IFEQ" for example. Both stay when the connection ends.
	Server, Dialect string
	Connects        uint64 // connections it has had, the present one included
	// RoundTrips counts the batches that it has answered to the last reply. RoundTrip
	// is how long that took, smoothed as in RFC 6298, RoundTripMax the longest: with
	// the node's own work, and up to 5 ms more where a quorum had answered before.
	RoundTrips              uint64
	RoundTrip, RoundTripMax time.Duration
	InFlight                int // replies that it owes
}

func newNode(n conn.Node) Node {
	return Node{n.Index, n.Addr, n.Up, n.Err, n.Guarded, n.Server, command.Form(n.Form).String(),
		n.Connects, n.RoundTrips, n.RoundTrip, n.RoundTripMax, n.InFlight}
}

// Lock is a handle on a lock that was acquired. It is a small value: copies are
// handles on the same lock. It is safe for concurrent use. Once the lock is
// released all its handles are dead and say ErrNotHeld; so does the zero Lock.
type Lock struct{ handle group.Handle }

// Key returns the locked key, or "" if the lock was released.
func (l Lock) Key() string { return l.handle.Key() }

// Token returns the value stored at the key, which proves who holds it, or "" if
// the lock was released. It allocates. Keep it secret: it can release the lock.
func (l Lock) Token() string { return l.handle.Token() }

// Remaining returns the validity that is left now, or 0. It neither blocks nor allocates.
func (l Lock) Remaining() time.Duration { return l.handle.Remaining() }

// Extend gives the lock a new ttl, counted from now. It succeeds only if a quorum of
// nodes still held the lock and extended it; it never takes a lost lock again. A lock
// without validity is not extended: ErrExpired. Extend blocks as TryAcquire does.
//
// After ErrNoQuorum or the context's error the lock is held for what Remaining says,
// which never counts on an unconfirmed extension. After ErrNotHeld it is lost.
func (l Lock) Extend(ctx context.Context, ttl time.Duration) error { return l.handle.Extend(ctx, ttl) }

// Release deletes the key on all nodes, also if its validity is over. It blocks
// until a quorum has answered, as TryAcquire does. With a context that has ended the
// release is sent all the same, and Release does not wait.
//
// There are three results: nil, released; ErrNotHeld, a quorum had lost it before;
// and any other error, unknown: the lock ends with its TTL at the latest, and Release
// may be called again. Validity ends when Release is called, unless the result is
// ErrBusy or ErrClosed, where no node was asked.
func (l Lock) Release(ctx context.Context) error { return l.handle.Release(ctx) }

// OpKind is what an operation asks for, an [Op] or a blocking call. Its String is
// "acquire", "extend" or "release".
type OpKind uint8

// The kinds of operations.
const (
	OpAcquire OpKind = 1 + iota
	OpExtend
	OpRelease
)

func (k OpKind) String() string { return engine.Kind(k).String() }

// Op is an operation for callers with an event loop of their own: it is submitted
// without blocking, and completed by a callback. It must not be touched from Submit to
// Done, or to a Cancel that returned true; then it can be used again.
type Op struct {
	Kind  OpKind
	Key   []byte           // 1 to MaxKey bytes
	TTL   time.Duration    // of OpAcquire and OpExtend
	Token [token.Size]byte // set by Submit for OpAcquire, by the caller for the others
	// Done is called once, by a goroutine of the client and without a lock: it may
	// use the client, and Submit this Op again. One runs at a time; after 20 ms the
	// others go on beside it. A panic is recovered and logged.
	Done func(*Op)

	op group.Op
}

// Submit begins op. It does not block and does not allocate. With an error (ErrBusy,
// ErrClosed, or that of a wrong op, or one under way) Done is not called. Done may be
// called before Submit returns.
func (c *Client) Submit(op *Op) error {
	in := &op.op
	if !in.Reserve() {
		return engine.ErrUnderWay // and leave it as it is
	}
	in.Kind, in.Key, in.TTL, in.Done = engine.Kind(op.Kind), op.Key, op.TTL, nil
	if op.Done != nil {
		in.Done = (*completion)(op)
	}
	return c.group.Submit(in, (*token.Token)(&op.Token))
}

// Cancel takes op back. It returns false if it is too late: Done was called or
// is about to be; or if op was not submitted to this client. An acquire that was
// sent is released in the background.
func (c *Client) Cancel(op *Op) bool { return c.group.Cancel(&op.op) }

// Err returns what TryAcquire, Extend or Release would have. Valid from Done on.
func (op *Op) Err() error { return op.op.Result() }

// Remaining returns how much validity is left after an OpAcquire or OpExtend
// without an error, else 0. A lock of which nothing is left must be released.
func (op *Op) Remaining() time.Duration { return op.op.Remaining() }

// completion hides Complete from the users of Op.
type completion Op

func (op *completion) Complete(*engine.Op) {
	defer op.Done((*Op)(op)) // also behind a hook that panics
	op.op.Report()
}
