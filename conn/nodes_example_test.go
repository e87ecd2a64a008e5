package conn_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// A vote of our own on a majority: who is the first to write a key?
func ExampleNodes_Do() {
	addresses, err := conn.ParseAddresses(masters(5))
	if err != nil {
		log.Fatal(err)
	}
	nodes, err := conn.Open(conn.Config{Addresses: addresses})
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := nodes.Await(ctx); err != nil {
		log.Fatal(err)
	}

	majority := quorum.Majority(quorum.First(len(addresses)))
	for _, name := range []string{"ann", "bob"} {
		var votes quorum.Tally
		votes.Reset(majority)
		for node, reply := range nodes.Do(ctx, resp.AppendCommand(nil, "SET", "leader", name, "NX", "PX", "30000")) {
			outcome := quorum.Failed
			switch {
			case reply.Err != nil || reply.Value.IsError():
			case reply.Value.IsOK():
				outcome = quorum.Granted
			default:
				outcome = quorum.Denied
			}
			if votes.Record(node, outcome) != quorum.Pending {
				break
			}
		}
		fmt.Println(name, votes.Verdict())
	}
	// Output:
	// ann won
	// bob lost
}

// Accept judges each server before it is a node. One that starts or is promoted anew has another Life: it may have forgotten.
func ExampleServer() {
	addresses, err := conn.ParseAddresses(masters(3))
	if err != nil {
		log.Fatal(err)
	}
	lives := make(map[int]string) // by node
	nodes, err := conn.Open(conn.Config{Addresses: addresses, Accept: func(node int, s conn.Server) error {
		if s.IsBefore(6) {
			return fmt.Errorf("%s is too old for us", &s)
		}
		if life, met := lives[node]; met && life != s.Life() {
			return errors.New("it has forgotten what it has promised")
		}
		lives[node] = s.Life()
		return nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	if err := nodes.Await(context.Background()); err != nil {
		log.Fatal(err)
	}
	nodes.Use(func(f *conn.Fleet) { fmt.Println(f.Len()-f.Away().Len() >= 2) })
	// Output: true
}

// Without a break the loop has every node once: its reply, or why there is none.
func ExampleReply() {
	addresses, err := conn.ParseAddresses(masters(3))
	if err != nil {
		log.Fatal(err)
	}
	var nodes *conn.Nodes
	if nodes, err = conn.Open(conn.Config{Addresses: addresses}); err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	if err := nodes.Await(context.Background()); err != nil {
		log.Fatal(err)
	}

	for _, command := range [][]byte{resp.AppendCommand(nil, "PING"), []byte("PING")} {
		answered, refused := 0, 0
		var reply conn.Reply
		for _, reply = range nodes.Do(context.Background(), command) {
			switch {
			case reply.Err == nil:
				answered++
			case errors.Is(reply.Err, conn.ErrCommand):
				refused++
			}
		}
		fmt.Println(answered, "nodes have answered,", refused, "were not asked")
	}
	// Output:
	// 3 nodes have answered, 0 were not asked
	// 0 nodes have answered, 3 were not asked
}

// A decision is a batch of our own: it goes to all nodes, or to one, in one write, and a majority makes it, long before its
// slowest node has answered. When it is done it may be used again, and nothing is allocated for it.
type decision struct {
	conn.Batch
	votes   quorum.Tally
	decided chan quorum.Verdict // holds one
	done    chan struct{}       // holds one
}

func (b *decision) vote(node int, o quorum.Outcome) {
	if b.votes.Verdict() == quorum.Pending && b.votes.Record(node, o) != quorum.Pending {
		b.decided <- b.votes.Verdict()
	}
}

func (b *decision) Reply(node, _ int, v *resp.Value) error {
	o := quorum.Denied
	if v.IsOK() {
		o = quorum.Granted
	}
	b.vote(node, o)
	return nil
}
func (b *decision) Fail(node, _ int, _ error) { b.vote(node, quorum.Failed) }
func (b *decision) Done()                     { b.done <- struct{}{} }

func ExampleNodes_Use() {
	addresses, err := conn.ParseAddresses(masters(3))
	if err != nil {
		log.Fatal(err)
	}
	nodes, err := conn.Open(conn.Config{Addresses: addresses})
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	if err := nodes.Await(context.Background()); err != nil {
		log.Fatal(err)
	}

	b := &decision{decided: make(chan quorum.Verdict, 1), done: make(chan struct{}, 1)}
	var owner conn.Owner = b
	b.Batch.Owner = owner
	for _, name := range []string{"ann", "bob"} {
		b.votes.Reset(quorum.Majority(quorum.First(len(addresses))))
		b.Buf, b.Replies = b.Buf[:0], 0
		b.Append("SET", "leader", name, "NX", "PX", "30000")
		nodes.Use(func(f *conn.Fleet) { f.Send(&b.Batch) })
		fmt.Println(name, <-b.decided)
		<-b.done
	}
	nodes.Use(func(f *conn.Fleet) {
		for i := range f.Len() {
			var n conn.Node = f.Node(i)
			fmt.Println(n.Up, n.InFlight)
		}
		fmt.Println(f.Away().Len(), "away")
	})
	// Output:
	// ann won
	// bob lost
	// true 0
	// true 0
	// true 0
	// 0 away
}

// masters stands for your masters.
func masters(n int) (addrs []string) {
	for range n {
		s, err := fakeredis.Start(fakeredis.Options{})
		if err != nil {
			log.Fatal(err)
		}
		addrs = append(addrs, s.Addr())
	}
	return addrs
}
