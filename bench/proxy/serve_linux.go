package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/redlock-go/redlock/bench/pause"
)

// serve carries between clients and backends until standard input ends. Each line of it is an
// order.
func serve(backends []string) error {
	nodes := make([]*node, len(backends))
	for i, backend := range backends {
		n := &node{backend: backend, conns: map[*net.TCPConn]bool{}}
		n.changed.L = &n.mu
		if err := n.listen("127.0.0.1:0"); err != nil {
			return err
		}
		nodes[i] = n
		fmt.Println(n.listener.Addr())
	}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		if err := obey(nodes, orders.Text()); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(done)
		}
	}
	return orders.Err()
}

// obey carries out one order.
func obey(nodes []*node, line string) error {
	var (
		what          string
		i             int
		delay, jitter int64
	)
	if got, _ := fmt.Sscan(line, &what, &i, &delay, &jitter); got < 2 || i < 0 || i >= len(nodes) {
		return fmt.Errorf("cannot read %q", line)
	}
	n := nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if what == "delay" {
		n.delay, n.jitter = time.Duration(delay), time.Duration(jitter)
		return nil
	}
	next, is := map[string]state{"pass": passing, "hang": hanging, "refuse": refusing, "blackhole": swallowing}[what]
	if !is {
		return fmt.Errorf("no such order: %q", line)
	}
	return n.become(next)
}

// state is which traffic a node lets through.
type state int

const (
	passing state = iota
	hanging
	refusing
	swallowing
)

// node stands in for one backend: clients dial it.
type node struct {
	backend  string
	listener *net.TCPListener

	mu            sync.Mutex
	changed       sync.Cond // of the state
	state         state
	delay, jitter time.Duration
	conns         map[*net.TCPConn]bool // of clients and to the backend
	fillers       []net.Conn            // keep the queue of a black hole full
}

// listen opens the listener, and accepts from it until it is closed.
func (n *node) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	n.listener = l.(*net.TCPListener)
	go func() {
		for {
			c, err := l.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err == nil:
				go n.join(c.(*net.TCPConn))
			}
			n.await() // a black hole accepts no more
		}
	}()
	return nil
}

// await returns when the node carries.
func (n *node) await() {
	n.mu.Lock()
	for n.state == hanging || n.state == swallowing {
		n.changed.Wait()
	}
	n.mu.Unlock()
}

// become changes what the node lets through, by way of passing. The lock is held.
func (n *node) become(next state) (err error) {
	if n.state == next {
		return nil
	}
	switch n.state {
	case refusing:
		err = n.listen(n.listener.Addr().String())
	case swallowing:
		for _, c := range n.fillers {
			_ = c.Close()
		}
		n.fillers = nil
		err = errors.Join(n.backlog(1<<12), n.listener.SetDeadline(time.Time{}))
	}
	n.state = next
	n.changed.Broadcast()
	switch next {
	case refusing:
		_ = n.listener.Close()
		for c := range n.conns {
			reset(c)
		}
	case swallowing:
		err = errors.Join(err, n.swallow())
	}
	return err
}

// backlog sets the length of the queue of connections that wait to be accepted.
func (n *node) backlog(length int) error {
	raw, err := n.listener.SyscallConn()
	if err != nil {
		return err
	}
	var listen error
	err = raw.Control(func(fd uintptr) { listen = syscall.Listen(int(fd), length) })
	return errors.Join(err, listen)
}

// swallow makes the kernel drop every connect: it does so where the queue is full.
func (n *node) swallow() error {
	if err := errors.Join(n.listener.SetDeadline(time.Unix(1, 0)), n.backlog(0)); err != nil {
		return err
	}
	const plenty, short = 4, 50 * time.Millisecond
	for range plenty {
		if c, err := net.DialTimeout("tcp", n.listener.Addr().String(), short); err == nil {
			n.fillers = append(n.fillers, c)
		}
	}
	return nil
}

// join connects a client to the backend, and carries in both directions until both end.
func (n *node) join(client *net.TCPConn) {
	defer client.Close()
	n.await()
	c, err := net.Dial("tcp", n.backend)
	if err != nil {
		reset(client)
		return
	}
	backend := c.(*net.TCPConn)
	defer backend.Close()
	n.mu.Lock()
	refused := n.state == refusing
	n.conns[client], n.conns[backend] = true, true
	n.mu.Unlock()
	if refused {
		reset(client)
	}
	var both sync.WaitGroup
	for from, to := range map[*net.TCPConn]*net.TCPConn{client: backend, backend: client} {
		both.Go(func() { n.carry(from, to) })
	}
	both.Wait()
	n.mu.Lock()
	delete(n.conns, client)
	delete(n.conns, backend)
	n.mu.Unlock()
}

// reset ends a connection without a farewell.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// chunk is the bytes of one read, and when they may leave.
type chunk struct {
	due   time.Time
	bytes []byte
}

// carry carries one direction of a connection until its end. Whichever side fails, both are reset.
func (n *node) carry(from, to *net.TCPConn) {
	fail := func() {
		reset(from)
		reset(to)
	}
	inFlight := make(chan chunk, 1<<12)
	var sender sync.WaitGroup
	sender.Go(func() {
		if n.send(to, inFlight) != nil {
			fail()
			for range inFlight { // so that the reader does not block
			}
		}
	})
	if n.receive(from, inFlight) != nil {
		fail() // before the sender ends it with a farewell
	}
	close(inFlight)
	sender.Wait()
}

// receive reads, and gives each chunk its time. A chunk never overtakes an earlier one.
func (n *node) receive(from *net.TCPConn, inFlight chan<- chunk) error {
	var last time.Time
	buf := make([]byte, 64<<10)
	for {
		k, err := from.Read(buf)
		if k > 0 {
			n.await()
			n.mu.Lock()
			delay := n.delay / 2
			if n.jitter > 1 {
				delay += rand.N(n.jitter / 2)
			}
			n.mu.Unlock()
			if due := time.Now().Add(delay); due.After(last) {
				last = due
			}
			inFlight <- chunk{last, append([]byte(nil), buf[:k]...)}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// send writes each chunk when it is due, and then the end.
func (n *node) send(to *net.TCPConn, inFlight <-chan chunk) error {
	timer, err := pause.New()
	if err != nil {
		return err
	}
	defer timer.Close()
	for c := range inFlight {
		if err := timer.Sleep(time.Until(c.due)); err != nil {
			return err
		}
		n.await()
		if _, err := to.Write(c.bytes); err != nil {
			return err
		}
	}
	return to.CloseWrite()
}
