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
// The algorithm: https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
package redlock

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
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
	// held for what Remaining says; after a Release it may be.
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
	Nodes []string
	// TLS is used for rediss:// nodes. At least TLS 1.2 is spoken, and the
	// server name is the node's host unless set here.
	TLS *tls.Config
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
	// MaxInFlight bounds the replies that a node may owe; beyond it its
	// connection is closed. Default: 16384.
	MaxInFlight int
	ClientName  string // for the nodes' CLIENT LIST; none if empty
	Portable    bool   // no raw socket path on Linux, as elsewhere
	// Logger hears warnings about the configuration. Default: none.
	Logger *slog.Logger
	// Rand is where tokens come from. Default, and the only right choice
	// outside tests: crypto/rand.
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

// Client holds the connections to the nodes. It is safe for concurrent use; one
// client serves a whole process.
type Client struct{ session *session.Session }

// New checks cfg, connects to the nodes and returns a client. It blocks until
// each node has answered or failed a first time, at most DialTimeout. Nodes that
// cannot be reached are no error: they are dialled in the background from then
// on, and vote "failed" until they are there. Two addresses of the same server
// are an error.
func New(cfg Config) (*Client, error) {
	s, err := session.Open(session.Config{
		Nodes:        cfg.Nodes,
		NodeTimeout:  cfg.NodeTimeout,
		RetryMin:     cfg.RetryMin,
		RetryMax:     cfg.RetryMax,
		CloseTimeout: cfg.CloseTimeout,
		MaxWaiting:   cfg.MaxWaiting,
		Logger:       cfg.Logger,
		Rand:         cfg.Rand,
		Conn: conn.Config{
			TLS:          cfg.TLS,
			Portable:     cfg.Portable,
			DialTimeout:  cfg.DialTimeout,
			StallTimeout: cfg.StallTimeout,
			MaxInFlight:  cfg.MaxInFlight,
			Name:         cfg.ClientName,
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
// The end of ctx is noticed within 5 ms. A key is 1 to MaxKey bytes, the Redis
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
// latest, and Release may be called again.
func (l Lock) Release(ctx context.Context) error { return l.hold.Release(ctx) }

// OpKind is what an [Op] asks for.
type OpKind = engine.Kind

// The kinds of an [Op].
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
	// Done is called once, from a goroutine of the client or of one of its
	// users. It must not block; it may Submit, also this Op again.
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
	e.Kind, e.Key, e.TTL, e.Token = op.Kind, op.Key, op.TTL, op.Token
	if e.Done = nil; op.Done != nil {
		e.Done = (*completion)(op)
	}
	op.session = c.session
	return c.session.Submit(e)
}

// Cancel takes op back. It returns false if it is too late: Done was called or
// is about to be. An acquire that was sent is released in the background.
func (c *Client) Cancel(op *Op) bool { return c.session.Cancel(&op.op) }

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

func (op *completion) Complete(*engine.Op) { op.Done((*Op)(op)) }
