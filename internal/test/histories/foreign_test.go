package histories

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

const foreignTTL = time.Second

// peer is a connection of a foreign client to a node, dialed for each order after a failure.
type peer struct {
	net  *virtual.Network
	host string
	addr string
	conn net.Conn
	r    *bufio.Reader
}

func newPeers(w *virtual.World, who string) (peers []*peer) {
	for _, addr := range w.Nodes {
		peers = append(peers, &peer{net: w.Net, host: who, addr: addr})
	}
	return peers
}

func closeAll(peers []*peer) {
	for _, p := range peers {
		p.close()
	}
}

// do gives an order and returns the first line of the reply.
func (p *peer) do(words ...string) (string, error) {
	if p.conn == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		c, err := p.net.Dialer(p.host)(ctx, "tcp", p.addr)
		if err != nil {
			return "", err
		}
		p.conn, p.r = c, bufio.NewReader(c)
	}
	_ = p.conn.SetDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := p.conn.Write([]byte(testkit.Encode(words...)))
	line := ""
	if err == nil {
		line, err = p.r.ReadString('\n')
	}
	if err == nil && line == "*1\r\n" {
		line, err = p.r.ReadString('\n')
	}
	if err != nil {
		p.close()
	}
	return strings.TrimSpace(line), err
}

func (p *peer) close() {
	if p.conn != nil {
		_ = p.conn.Close()
		p.conn = nil
	}
}

// foreigner is a client of another library. It polls as redsync does: 32 tries with random pauses,
// and again.
func (h *history) foreigner(id int) {
	rng, who := h.rng(1, id), fmt.Sprint("foreign", id)
	peers := newPeers(h.World, who)
	defer closeAll(peers)
	for h.pause(rng.N(200 * time.Millisecond)) {
		h.foreignLock(who, h.keys[0], peers, rng)
	}
}

// foreignLock waits for a lock and holds it for a moment. Each try has a value of its own: a node
// that reads late gets the release of an earlier try after the next try's order, and would delete
// a lock of the same value.
func (h *history) foreignLock(who, key string, peers []*peer, rng random) {
	for n, try := rng.Uint64(), 1; ; try++ {
		value := fmt.Sprintf("%s-%020d-%d", who, n, try)
		if until, won := acquire(peers, key, value); won {
			b := h.ledger.granted(&holding{
				who: who, keys: []string{key}, digest: texts.Digest([]byte(value)),
				remaining: func() time.Duration { return max(0, time.Until(until)) },
			})
			h.pause(rng.N(50 * time.Millisecond))
			h.ledger.gone(b)
			release(peers, key, value)
			return
		}
		release(peers, key, value)
		if try%32 == 0 {
			h.log("%s gives %s up", who, key)
		}
		if !h.pause(50*time.Millisecond + rng.N(200*time.Millisecond)) {
			return
		}
	}
}

func acquire(peers []*peer, key, value string) (until time.Time, won bool) {
	votes := 0
	until = time.Now().Add(foreignTTL - quorum.Drift(foreignTTL))
	for _, p := range peers {
		if line, err := p.do("SET", key, value, "NX", "PX", fmt.Sprint(foreignTTL.Milliseconds())); err == nil && line == "+OK" {
			votes++
		}
	}
	return until, votes >= quorum.Size(len(peers)) && time.Now().Before(until)
}

func release(peers []*peer, key, value string) {
	for _, p := range peers {
		_, _ = p.do("EVAL", command.ReleaseScript, "1", key, value)
	}
}
