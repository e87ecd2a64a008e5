package conn

import (
	"crypto/tls"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/resp"
)

// demand is a SET and, behind it, a script over two locks, with an owner who
// takes an answer just as the library does: an error refuses and is a reply like
// any other, what does not fit the command ends the connection.
type demand struct {
	Batch
	nodes   []outcome
	settled int
	broken  []string // the rules of Owner that were
}

// outcome is what one node made of a demand.
type outcome struct {
	replies int
	refused int // of them, errors
	ended   bool
	err     error
}

const demands = 2 // replies to one

// ok and counts are what an honest server answers, one for each command.
const (
	ok     = "+OK\r\n"
	counts = "*2\r\n:1\r\n:0\r\n"
)

func newDemand(nodes int) *demand {
	d := &demand{nodes: make([]outcome, nodes)}
	d.Buf = append(command("SET", "key", "token", "NX", "PX", "1000"),
		command("EVALSHA", testScript.SHA1, "2", "one", "two", "token", "token")...)
	d.Replies = demands
	d.Owner = d
	return d
}

// demand sends one to all nodes.
func (r *rig) demand() *demand {
	d := newDemand(r.Len())
	r.do(func() { r.Send(&d.Batch) })
	return d
}

func (d *demand) expect(is bool, rule string) {
	if !is {
		d.broken = append(d.broken, rule)
	}
}

func (d *demand) Reply(node, i int, v *resp.Value) error {
	o := &d.nodes[node]
	d.expect(!o.ended && d.settled == 0, "a reply behind the end")
	d.expect(i == o.replies, "replies out of order")
	o.replies++
	o.ended = o.replies == demands
	switch {
	case v.IsError():
		o.refused++
		return nil
	case i == 0 && (v.IsOK() || v.Null):
		return nil
	case i == 1 && v.Kind == resp.Array && v.Int == 2:
		it := v.Elements()
		for it.Next() {
			if e := it.Value(); e.Kind != resp.Integer || e.Int != 0 && e.Int != 1 {
				return errMisfit
			}
		}
		return nil
	}
	return errMisfit
}

func (d *demand) Fail(node, i int, err error) {
	o := &d.nodes[node]
	d.expect(!o.ended && d.settled == 0, "a failure behind the end")
	d.expect(i == o.replies, "a failure elsewhere than behind the last reply")
	o.ended, o.err = true, err
}

func (d *demand) Settled() {
	d.settled++
	for _, o := range d.nodes {
		d.expect(o.ended, "settled too early")
	}
}

// check holds what is over to the rules.
func (d *demand) check(t *testing.T, who string) {
	t.Helper()
	require.Empty(t, d.broken, who)
	require.Equal(t, 1, d.settled, who)
}

// way is a kind of connection.
type way struct {
	portable       bool
	server, client *tls.Config // nil without TLS
}

// eachWay is eachPath with TLS as one more.
func eachWay(t *testing.T, f func(t *testing.T, w way)) {
	eachPath(t, func(t *testing.T, portable bool) { f(t, way{portable: portable}) })
	t.Run("tls", func(t *testing.T) {
		server, client := newIdentity(t, "127.0.0.1")
		f(t, way{true, server, client})
	})
}

// rig has n nodes, all of which were told a secret.
func (w way) rig(t *testing.T, n int, set ...func(*Config)) *rig {
	t.Helper()
	ps := newPeers(t, n, func(p *peer) { p.tls = w.server })
	r := newRig(t, w.portable, ps, append(set, func(cfg *Config) {
		cfg.TLS = w.client
		for i := range cfg.Addresses {
			cfg.Addresses[i].login = newLogin("", marked)
		}
	})...)
	r.up()
	return r
}

// flood is a step: a block of bytes again and again, up to so many in total.
// The block is there before, so that a flood costs its server no memory.
type flood struct {
	block []byte
	total int
}

func floodOf(unit string, total int) flood {
	var block []byte
	for len(block) < 32<<10 {
		block = append(block, unit...)
	}
	return flood{block[:min(len(block), total)], total}
}

// packets is a step: each byte in a write of its own.
type packets string

// below is a step: bytes that go past TLS, if there is any.
type below string

// perform does what a script says, with more kinds of step than play knows, and
// reports whether the connection goes on.
func (w *wire) perform(does steps) bool {
	for _, step := range does {
		goesOn := true
		switch step := step.(type) {
		case flood:
			for sent := 0; sent < step.total && goesOn; sent += len(step.block) {
				_, err := w.Write(step.block)
				goesOn = err == nil
			}
		case packets:
			for i := 0; i < len(step) && goesOn; i++ {
				_, err := w.Write([]byte{step[i]})
				goesOn = err == nil
			}
		case below:
			_, err := transport(w.Conn).Write([]byte(step))
			goesOn = err == nil
		default:
			goesOn = w.play(steps{step})
		}
		if !goesOn {
			return false
		}
	}
	return true
}

// ended waits until the client has closed, in whatever manner.
func (w *wire) ended(who string) {
	w.t.Helper()
	nc := transport(w.Conn)
	if nc.SetReadDeadline(time.Now().Add(patience)) != nil {
		return // closed by its own server
	}
	buf := make([]byte, 4<<10)
	for err := error(nil); err == nil; {
		_, err = nc.Read(buf)
		require.NotErrorIs(w.t, err, os.ErrDeadlineExceeded, "%s: the client has not closed", who)
	}
}
