package engine

import (
	"encoding/binary"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/script"
	"github.com/redlock-go/redlock/internal/token"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// A release that a node could not be given is a debt. It is paid first thing on
// the node's next connection, before anything else is sent: a lock is not
// extended by a node that is about to release it. Whatever may have set a key
// that nobody wants is followed by a release, so that no more than releases need
// be remembered; and to release what is not there does no harm.
//
// Nothing is owed where the key cannot be (Op.Absent). While a quorum is away,
// every attempt fails at once and is cleaned up after on all nodes, thousands of
// times a second: debts without keys would drive out those that have one.

// debtBytes bounds what is remembered for a node: as many releases as may be
// under way there, with keys of 30 bytes, and the first of them. A call that pays
// some is bounded too: a server answers nothing before it has the whole of it, and
// one that does not answer is taken for dead.
const (
	debtBytes = 1 << 20
	callBytes = 64 << 10
)

// debts are the releases owed to one node. An entry is the key's length in two
// bytes, the key and the token.
type debts struct {
	entries []byte
	full    bool
	met     bool // the node had a connection once; without it there are no keys
}

func (d *debts) add(key, token []byte) {
	need := 2 + len(key) + len(token)
	if len(d.entries)+need > debtBytes {
		d.compact()
	}
	if d.full = d.full || len(d.entries)+need > debtBytes; d.full {
		return
	}
	d.entries = binary.BigEndian.AppendUint16(d.entries, uint16(len(key)))
	d.entries = append(d.entries, key...)
	d.entries = append(d.entries, token...)
}

// compact leaves one of each entry: while a quorum is away releases fail, and
// callers try them again and again. It is full then if that did not gain much, or
// it would be done for every entry that comes.
func (d *debts) compact() {
	seen := make(map[string]bool)
	kept := d.entries[:0]
	for left := d.entries; len(left) > 0; {
		_, _, rest := cutDebt(left)
		entry := left[:len(left)-len(rest)]
		if !seen[string(entry)] {
			seen[string(entry)] = true
			kept = append(kept, entry...)
		}
		left = rest
	}
	d.entries = kept
	d.full = len(kept) > debtBytes/8*7
}

// cutDebt returns the first entry and what is behind it.
func cutDebt(entries []byte) (key, tok, rest []byte) {
	n := 2 + int(binary.BigEndian.Uint16(entries))
	return entries[2:n], entries[n : n+token.Size], entries[n+token.Size:]
}

func (d *debts) forget() { d.entries, d.full = nil, false }

// outlive notes the TTL of something that is about to be sent.
func (e *Engine) outlive(ttl time.Duration) {
	if ttl > e.longest {
		e.longest = ttl
		e.fleet.Outlive(ttl + quorum.Drift(ttl))
	}
}

// owe remembers a command that failed on a node, if it is a release; absent is
// the Op.Absent of what it releases.
func (e *Engine) owe(node int, kind Kind, command []byte, absent []uint64) {
	d := &e.debts[node]
	if kind != Release || !d.met || d.full || e.closing.Load() {
		return
	}
	nowhere := uint64(1) << uint(node)
	for _, nodes := range absent {
		nowhere &= nodes
	}
	if nowhere != 0 {
		return // for most of what a node misses while it is away
	}
	e.operands.read(kind, command)
	for i, key := range e.operands.keys {
		if absent[i]>>uint(node)&1 == 0 {
			d.add(key, e.operands.tokens[i])
		}
	}
	clear(e.operands.args) // they point into what may be large
}

// NodeUp is told of a node that has a new connection, on which nothing was sent.
// The role is held.
func (e *Engine) NodeUp(node int) {
	d := &e.debts[node]
	if d.met = true; len(d.entries) == 0 {
		return
	}
	p := &payment{engine: e}
	p.Owner, p.Dialect = p, e.fleet.Dialect(node)
	p.write(d.entries)
	p.Replies = len(p.starts)
	d.forget() // before the payment fails, if it fails at once
	e.watchdog.see(maxTimeout)
	e.unsettled++
	e.fleet.SendTo(node, &p.Batch)
}

// payment is the releases that one node is owed, as one batch.
type payment struct {
	conn.Batch
	engine *Engine
	starts []int // of the commands in Buf
}

func (p *payment) write(entries []byte) {
	for len(entries) > 0 {
		p.starts = append(p.starts, len(p.Buf))
		if p.Dialect.Release == conn.ReleaseScript {
			entries = p.writeCall(entries)
			continue
		}
		key, tok, rest := cutDebt(entries)
		p.Buf = appendNativeRelease(p.Buf, p.Dialect.Release, key, tok)
		entries = rest
	}
}

// writeCall writes a script call for the first entries and returns the others.
func (p *payment) writeCall(entries []byte) (rest []byte) {
	n := 0
	for rest = entries; len(rest) > 0 && n < script.MaxKeys && len(entries)-len(rest) < callBytes; n++ {
		_, _, rest = cutDebt(rest)
	}
	p.Buf = appendEvalSHA(p.Buf, Release, script.ReleaseSHA1, n)
	left := entries
	for range n {
		var key []byte
		key, _, left = cutDebt(left)
		p.Buf = resp.AppendBulk(p.Buf, key)
	}
	left = entries
	for range n {
		var tok []byte
		_, tok, left = cutDebt(left)
		p.Buf = appendToken(p.Buf, tok)
	}
	return rest
}

// Reply implements conn.Owner. Which of its answers a node gives makes no
// difference: the key is gone, was never there, or ends with its TTL.
func (p *payment) Reply(_, _ int, v *resp.Value) error {
	fits := resp.Integer
	if p.Dialect.Release == conn.ReleaseScript {
		fits = resp.Array
	}
	switch {
	case v.IsError():
		return conn.Fatality(v.Bytes)
	case v.Kind != fits:
		return misfit(v)
	}
	return nil
}

// Fail implements conn.Owner: what was not paid is owed again, whatever ended the
// connection. A payment is the first thing on it and has no bound there, so that it
// is never what was too much.
func (p *payment) Fail(node, i int, _ error) {
	var anywhere [script.MaxKeys]uint64
	for ; i < len(p.starts); i++ {
		end := len(p.Buf)
		if i+1 < len(p.starts) {
			end = p.starts[i+1]
		}
		p.engine.owe(node, Release, p.Buf[p.starts[i]:end], anywhere[:])
	}
}

// Settled implements conn.Owner.
func (p *payment) Settled() { p.engine.settle() }
