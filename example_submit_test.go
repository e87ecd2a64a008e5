package redlock_test

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"github.com/redlock-go/redlock"
)

// proxy offers locks to programs that have no Redlock of their own, over the protocol of Redis:
//
//	LOCK key milliseconds   the token, or null if the lock is taken
//	UNLOCK key token        1, or 0 if it was not held
//
// Commands may be pipelined. None of them waits for another: each becomes an Op that is submitted at once, so that those of
// all connections share the client's batches, and each connection is answered in the order it asked in.
type proxy struct{ client *redlock.Client }

// request is a command that was read and not yet answered.
type request struct {
	op    redlock.Op
	fault error         // of Submit: there is nothing to wait for
	done  chan struct{} // holds one, so that Done never blocks
}

// maxPending is how many answers a connection may be behind before it is not read any more.
const maxPending = 128

// handle takes a connection out of redcon's loop, which knows no answer that comes later, at its first command.
func (p *proxy) handle(conn redcon.Conn, first redcon.Command) {
	detached := conn.Detach()
	pending := make(chan *request, maxPending)
	go p.read(detached, first, pending)
	go p.answer(detached, pending)
}

// read submits commands as they come. It waits for no lock.
func (p *proxy) read(conn redcon.DetachedConn, cmd redcon.Command, pending chan<- *request) {
	defer close(pending)
	for {
		r := parse(cmd)
		if r.fault == nil {
			r.fault = p.client.Submit(&r.op)
		}
		pending <- r
		var err error
		if cmd, err = conn.ReadCommand(); err != nil {
			return
		}
	}
}

// answer writes what the callbacks report, in the order of the commands, and flushes when the next answer is not there yet.
func (p *proxy) answer(conn redcon.DetachedConn, pending <-chan *request) {
	defer conn.Close()
	gone := false
	for r := range pending {
		if r.fault == nil {
			if len(r.done) == 0 {
				gone = gone || conn.Flush() != nil
			}
			<-r.done
			r.fault = r.op.Err()
		}
		acquired := r.op.Kind == redlock.OpAcquire && r.fault == nil
		switch {
		case acquired && (gone || r.op.Remaining() == 0):
			p.giveBack(r) // the caller is gone, or it is too late
			conn.WriteNull()
		case acquired:
			conn.WriteBulkString(r.op.Token())
		case r.fault == redlock.ErrTaken:
			conn.WriteNull()
		case r.fault == redlock.ErrNotHeld:
			conn.WriteInt(0)
		case r.fault == nil:
			conn.WriteInt(1)
		default:
			conn.WriteError("ERR " + r.fault.Error())
		}
		if len(pending) == 0 {
			gone = gone || conn.Flush() != nil
		}
	}
}

// giveBack releases a lock without waiting for the result.
func (p *proxy) giveBack(r *request) {
	r.op.Kind, r.op.Done = redlock.OpRelease, func(*redlock.Op) {}
	_ = p.client.Submit(&r.op) // if that fails too, the lock ends with its TTL
}

// parse turns a command into an operation. It copies the key, since redcon uses the buffer again.
func parse(cmd redcon.Command) *request {
	r := &request{done: make(chan struct{}, 1)}
	r.op.Done = func(*redlock.Op) { r.done <- struct{}{} }
	name, args := strings.ToUpper(string(cmd.Args[0])), cmd.Args[1:]
	switch {
	case name == "LOCK" && len(args) == 2:
		ms, err := strconv.ParseInt(string(args[1]), 10, 32)
		r.fault = err
		r.op.Kind, r.op.TTL = redlock.OpAcquire, time.Duration(ms)*time.Millisecond
	case name == "UNLOCK" && len(args) == 2:
		r.op.Kind = redlock.OpRelease
		r.op.SetToken(string(args[1]))
	default:
		r.fault = fmt.Errorf("neither LOCK key milliseconds nor UNLOCK key token")
		return r
	}
	r.op.Key = append(r.op.Key, args[0]...)
	return r
}

// A proxy with an event loop of its own submits operations and is called back.
func ExampleClient_Submit() {
	client, stop := connect()
	defer stop()
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	defer ln.Close()
	go redcon.Serve(ln, (&proxy{client}).handle, nil, nil)

	// A client that pipelines.
	conn := must(net.Dial("tcp", ln.Addr().String()))
	defer conn.Close()
	replies := bufio.NewScanner(conn)
	next := func() string {
		replies.Scan()
		return replies.Text()
	}
	fmt.Fprint(conn, "LOCK orders:42 10000\r\nLOCK orders:42 10000\r\nLOCK orders:43 10000\r\nLOCK\r\n")
	fmt.Println("first: ", next())
	token := next()
	fmt.Println("second:", next())
	fmt.Println("third: ", next())
	next() // its token
	fmt.Println("fourth:", next())
	fmt.Fprintf(conn, "UNLOCK orders:42 %s\r\nUNLOCK orders:42 %s\r\nLOCK orders:42 10000\r\n", token, token)
	fmt.Println("unlock:", next())
	fmt.Println("again: ", next())
	fmt.Println("lock:  ", next())
	// Output:
	// first:  $31
	// second: $-1
	// third:  $31
	// fourth: -ERR neither LOCK key milliseconds nor UNLOCK key token
	// unlock: :1
	// again:  :0
	// lock:   $31
}

// A loop whose requests have a deadline stops reading them while too many wait. What waits for longer than Op.Within is in
// vain, and its releases keep the nodes busy.
func ExampleClient_Submit_backPressure() {
	const rate, deadline = 200_000, 20 * time.Millisecond // of operations a second: measure yours
	client, stop := connect(func(c *redlock.Config) { c.MaxWaiting = int(rate * deadline / time.Second / 2) })
	defer stop()
	const requests = 5000
	room, done := make(chan struct{}, 1), make(chan error, requests)
	for i := range requests {
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: fmt.Append(nil, "orders:", i), TTL: 10 * time.Second, Within: deadline}
		op.Done = func(op *redlock.Op) {
			done <- op.Err() // nil, context.DeadlineExceeded, or another one
			select {
			case room <- struct{}{}:
			default: // the loop reads already
			}
		}
		for client.Submit(op) == redlock.ErrBusy {
			select {
			case <-room:
			case <-time.After(time.Millisecond): // what waits may be such releases alone, and they have no Done
			}
		}
	}
	for range requests {
		<-done
	}
	fmt.Println("each is answered, in time or soon after")
	// Output: each is answered, in time or soon after
}

// An operation that is not wanted any more is taken back, unless it is done already.
func ExampleClient_Cancel() {
	client, stop := connect()
	defer stop()
	done := make(chan error, 1)
	op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("orders:42"), TTL: time.Second, Done: func(op *redlock.Op) { done <- op.Err() }}
	if err := client.Submit(op); err != nil {
		log.Fatal(err)
	}
	if !client.Cancel(op) { // else Done is not called, and a lock that was granted is released
		<-done
	}
	fmt.Println("canceled again:", client.Cancel(op))
	// Output: canceled again: false
}

// Readers share a lock through an event loop too: an Op of each kind, with the token of the first.
func ExampleOpKind() {
	client, stop := connect()
	defer stop()
	done := make(chan error)
	op := &redlock.Op{Key: []byte("table"), TTL: 10 * time.Second, Done: func(op *redlock.Op) { done <- op.Err() }}
	for _, op.Kind = range []redlock.OpKind{
		redlock.OpAcquire, redlock.OpExtend, redlock.OpRelease,
		redlock.OpAcquireShared, redlock.OpExtendShared, redlock.OpReleaseShared,
	} {
		if err := client.Submit(op); err != nil {
			log.Fatal(err)
		}
		fmt.Println(op.Kind, <-done)
	}
	// Output:
	// acquire <nil>
	// extend <nil>
	// release <nil>
	// acquire shared <nil>
	// extend shared <nil>
	// release shared <nil>
}

// A server that takes keys and TTLs from its clients checks them before.
func ExampleMaxKey() {
	check := func(nodes []string, key string, ttl time.Duration) bool {
		return len(nodes) <= redlock.MaxNodes && key != "" && len(key) <= redlock.MaxKey && ttl >= redlock.MinTTL && ttl <= redlock.MaxTTL
	}
	fmt.Println(check([]string{"a:6379"}, "orders:42", 10*time.Second), check([]string{"a:6379"}, "orders:42", time.Millisecond))
	// Output: true false
}
