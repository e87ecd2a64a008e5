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

// When a connection dies, its node may have set keys that nobody will release: of
// acquires it did not answer, and of locks that are released while it is away.
// The client remembers them as debts and pays first thing on the node's next
// connection, before any acquire. It is safe to release what was not set, and
// also what turned out to be locked by a quorum of the others: this node's vote
// was not among theirs, and an extend that could count on it comes later.
//
// Nothing set on the lost connection outlives the longest TTL, so nothing is
// remembered after that: a node that stays away costs nothing.

// debtBytes bounds what is remembered for a node, in each of two generations.
// When the younger is full it replaces the elder, whose keys expire first.
const debtBytes = 128 << 10

// debts are the releases owed to one node. An entry is the key's length in two
// bytes, the key and the token.
type debts struct {
	elder, younger []byte
	until          time.Duration // when all that may be owed has expired
}

func (d *debts) add(key, token []byte) {
	if len(d.younger)+2+len(key)+len(token) > debtBytes {
		d.elder, d.younger = d.younger, d.elder[:0]
	}
	d.younger = binary.BigEndian.AppendUint16(d.younger, uint16(len(key)))
	d.younger = append(d.younger, key...)
	d.younger = append(d.younger, token...)
}

// cutDebt returns the first entry and what is behind it.
func cutDebt(entries []byte) (key, tok, rest []byte) {
	n := 2 + int(binary.BigEndian.Uint16(entries))
	return entries[2:n], entries[n : n+token.Size], entries[n+token.Size:]
}

func (d *debts) forget() { d.elder, d.younger = d.elder[:0], d.younger[:0] }

// outlive notes the TTL of something that is about to be sent.
func (e *Engine) outlive(ttl time.Duration) {
	if ttl > e.longest {
		e.longest = ttl
		e.fleet.Outlive(ttl + quorum.Drift(ttl))
	}
}

// NodeDown is told of a node that has lost its connection, before what it owes
// fails. The role is held.
func (e *Engine) NodeDown(node int) {
	if e.debts != nil {
		e.debts[node].until = e.clock.Now() + e.longest + quorum.Drift(e.longest)
	}
}

// owe remembers a command that failed on a node, if it may have left a key there
// or would have removed one.
func (e *Engine) owe(node int, kind Kind, command []byte, unsent bool) {
	d := &e.debts[node]
	if kind == Extend || kind == Acquire && unsent || d.until == 0 {
		return
	}
	if e.closing.Load() || e.clock.Now() >= d.until {
		d.forget()
		d.until = 0
		return
	}
	e.operands.read(kind, command)
	for i, key := range e.operands.keys {
		d.add(key, e.operands.tokens[i])
	}
}

// NodeUp is told of a node that has a new connection, on which nothing was sent.
// The role is held.
func (e *Engine) NodeUp(node int) {
	if e.debts == nil {
		return
	}
	d := &e.debts[node]
	p := &payment{engine: e}
	if e.clock.Now() < d.until {
		p.Owner, p.Dialect = p, e.fleet.Dialect(node)
		p.write(d.elder)
		p.write(d.younger)
		p.Replies = len(p.starts)
	}
	d.forget() // before the payment fails, if it fails at once
	if p.Replies > 0 {
		e.watchdog.see(maxTimeout)
		e.unsettled++
		e.fleet.SendTo(node, &p.Batch)
	}
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
		switch p.Dialect.Release {
		case conn.ReleaseScript:
			entries = p.writeCall(entries)
			continue
		case conn.ReleaseDelIfEq:
			p.Buf = append(p.Buf, "*3\r\n$7\r\nDELIFEQ\r\n"...)
		case conn.ReleaseDelEx:
			p.Buf = append(p.Buf, "*4\r\n$5\r\nDELEX\r\n"...)
		}
		key, tok, rest := cutDebt(entries)
		p.Buf = resp.AppendBulk(p.Buf, key)
		if p.Dialect.Release == conn.ReleaseDelEx {
			p.Buf = resp.AppendBulkString(p.Buf, "IFEQ")
		}
		p.Buf = resp.AppendBulk(p.Buf, tok)
		entries = rest
	}
}

// writeCall writes a script call for the first entries and returns the others.
func (p *payment) writeCall(entries []byte) (rest []byte) {
	n := 0
	for rest = entries; len(rest) > 0 && n < script.MaxKeys; n++ {
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
		p.Buf = resp.AppendBulk(p.Buf, tok)
	}
	return rest
}

// Reply implements conn.Owner. What the node says makes no difference: the key
// is gone, was never there, or ends with its TTL.
func (p *payment) Reply(int, int, *resp.Value) error { return nil }

// Fail implements conn.Owner: what was not paid is owed again.
func (p *payment) Fail(node, i int, _ error) {
	for ; i < len(p.starts); i++ {
		end := len(p.Buf)
		if i+1 < len(p.starts) {
			end = p.starts[i+1]
		}
		p.engine.owe(node, Release, p.Buf[p.starts[i]:end], false)
	}
}

// Settled implements conn.Owner.
func (p *payment) Settled() { p.engine.settle() }
