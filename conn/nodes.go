package conn

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// Nodes is a [Fleet] that drives itself: any goroutine may call its methods. It has one goroutine, parked until
// something arrives, however many requests are under way.
type Nodes struct {
	driver
}

// Reply is what one node has answered, or why it has not.
type Reply struct {
	// Value is the node's reply, perhaps an error reply; nil where Err is set. It is valid until the loop's next step. A
	// server with RESP3 (Redis 6) has kinds of its own for a missing value, a map and a set: ask for Null and Elements.
	Value *resp.Value
	// Err is an [*Error] of the node, or the error of the context. If it wraps [ErrNotSent] the node was sent nothing;
	// otherwise it may have executed the command.
	Err error
}

// Open begins to connect to the nodes, in the background. A node that is down is dialed again until Close.
func Open(cfg Config) (*Nodes, error) {
	cfg.MaxReply = cmp.Or(cfg.MaxReply, readBuffer)
	n := new(Nodes)
	if err := n.start(cfg); err != nil {
		return nil, err
	}
	return n, nil
}

// Await waits until a majority of the nodes is up, and at first about as long again for the others. The error is that
// of ctx, with the reason of each node down; or [ErrClosed].
func (n *Nodes) Await(ctx context.Context) error {
	n.fleet.AwaitFirst(ctx.Done(), func(up quorum.Set) bool { return up.Len() >= n.majority })
	for {
		news, err := n.majorityUp()
		if news == nil {
			return err
		}
		select {
		case <-news:
		case <-time.After(wantedFor / 2): // they are to be dialed often
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// majorityUp returns nil once a majority is up, or else a channel closed by the next node that comes up, and why others are
// down.
func (n *Nodes) majorityUp() (news <-chan struct{}, why error) {
	n.lock()
	defer n.unlock()
	away := n.fleet.Away()
	switch {
	case n.closed:
		return nil, ErrClosed
	case n.fleet.Len()-away.Len() >= n.majority:
		return nil, nil
	}
	n.fleet.Want()
	for node := range away.All() {
		why = errors.Join(why, n.fleet.Fault(node))
	}
	return n.cameUp, why
}

// Do sends one command to all nodes and ranges over what they answer: each node's number and its [Reply], in the order
// of their arrival, the first ones once a majority has answered or failed. Break when enough is known; what comes later
// is dropped. When ctx ends, each node without an answer yields its error. So a loop without a break has every node
// once.
//
//	command := resp.AppendCommand(nil, "SET", key, value, "NX", "PX", "30000")
//	var votes quorum.Tally
//	votes.Reset(quorum.Majority(quorum.First(len(addresses))))
//	for node, reply := range nodes.Do(ctx, command) {
//		if votes.Record(node, vote(reply)) != quorum.Pending {
//			break
//		}
//	}
//
// The command is written to all nodes before any reply is read, and is copied. Do never sends it twice. Commands of
// several callers share a write and a connection, so each must have one reply, well within StallTimeout (else the
// connection ends for all), and leave the connection as it is. SUBSCRIBE, MULTI, SELECT, BLPOP and the like, and bytes
// other than one command, are sent to no node: each node yields [ErrCommand]. CLIENT REPLY, XREAD BLOCK and long
// scripts are not recognized.
func (n *Nodes) Do(ctx context.Context, command []byte) iter.Seq2[int, Reply] {
	return func(yield func(int, Reply) bool) { n.do(ctx, command, yield) }
}

func (n *Nodes) do(ctx context.Context, command []byte, yield func(int, Reply) bool) {
	if !isCommand(command) {
		fail(quorum.First(n.fleet.Len()), ErrCommand, yield)
		return
	}
	c := n.newCall(command)
	defer n.leave(c) // yield may panic
	n.submit(c)
	for read := 0; read < len(c.answers); {
		if err := n.await(ctx, c, read); err != nil {
			fail(quorum.First(len(c.answers))&^c.heard, err, yield)
			return
		}
		for come := int(c.come.Load()); read < come; read++ {
			a := &c.answers[read]
			c.heard.Add(a.node)
			r := Reply{Err: a.err}
			if a.err == nil {
				_, _ = c.decoder.Decode(a.frame, &c.value) // it was decoded before
				r.Value = &c.value
			}
			if !yield(a.node, r) {
				return
			}
		}
	}
}

// await waits for more answers than the caller has read. The error is that of its context.
func (n *Nodes) await(ctx context.Context, c *call, read int) error {
	if read > 0 && (int(c.come.Load()) > read || n.wants(c, read+1)) {
		return nil
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fail yields err for each of the nodes.
func fail(nodes quorum.Set, err error, yield func(int, Reply) bool) {
	for node := range nodes.All() {
		if !yield(node, Reply{Err: err}) {
			return
		}
	}
}

// Use runs f with the fleet's lock held: to send batches of one's own, to all nodes or to one, and to see who is up. f
// must not block, nor use n. It may use every method of the fleet but Wait, Arm, Drain, AwaitFirst and Close; so may,
// within the bounds of [Owner], the owners of its batches. These are called by f itself, by later uses of n, and by n's
// goroutine. A panic of f reaches its caller, one of an owner may end the process. While one blocks, no node is read
// and nothing is sent: Do still returns when its ctx ends, and Use and Close wait.
func (n *Nodes) Use(f func(*Fleet)) {
	n.lock()
	defer n.unlock()
	f(n.fleet)
}

// Close ends all connections, and fails what is under way with [ErrClosed]. It waits for n's goroutines.
func (n *Nodes) Close() { n.close() }
