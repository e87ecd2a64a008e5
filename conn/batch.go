package conn

import (
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/resp"
)

// Form is the number of the encoding of a node's commands. Only the owner of the fleet knows its meaning.
type Form uint16

// Batch is the bytes of one write: commands encoded once, written as they are to every node of their form, and kept
// until the last of these nodes has answered or failed.
type Batch struct {
	// Buf holds the encoded commands. It must not change from Send to Done: a node with a full kernel buffer is
	// written to later.
	Buf []byte
	// Replies is the number of replies owed by each node for Buf: see Append. A wrong one gives others the replies of this
	// batch, or ends the connection for all.
	Replies int
	// Owner receives the replies and the failures.
	Owner Owner
	// Form is the form of the commands in Buf.
	Form Form
	// Votes has SendTo look before it as Send does: see [Config.Looks].
	Votes bool
	// Doubter, where set, gets what fails by [ErrEmptied] without one.
	Doubter interface {
		// Doubted is Reply for what a server has answered after it had lost all keys, maybe as a replica.
		Doubted(node, i int, v *resp.Value) error
	}
	// Next links the same commands in other forms. Send gives each node the
	// batch in its form, or the first of the list where none has it.
	Next *Batch

	// Usual holds the replies of a node doing everything asked, a line each, or nothing. Replies equal to Usual are
	// compared and counted, and not decoded: Counter learns of them, in place of Owner.
	Usual   []byte
	Counter interface {
		// AsUsual reports that n replies from i on are as expected.
		AsUsual(node, i, n int)
	}

	sentAt  clock.Instant
	single  bool // it was sent by SendTo
	counted bool // in Fleet.under
	waiting int  // nodes yet to answer or fail, plus one during Send
}

// Append adds a command with one reply to Buf and Replies. It allocates only where Buf grows.
func (b *Batch) Append(words ...string) {
	b.Buf = resp.AppendCommand(b.Buf, words...)
	b.Replies++
}

// Owner receives the replies to a [Batch]. All calls come from within Send, SendTo, Sweep, Check or Close, with the
// fleet's lock held. They may call SendTo and SetForm, and nothing else of the fleet.
type Owner interface {
	// Reply brings reply i, counted from 0, of one node. The value is valid during the call only. An error means: the
	// reply does not fit the command. Then the connection is closed, and all replies it still owes fail.
	Reply(node, i int, v *resp.Value) error
	// Fail reports that the replies from i on will never come. If err wraps ErrNotSent, no byte of their commands was
	// written; otherwise the commands may have been applied.
	Fail(node, i int, err error)
	// Done reports that every node has answered or failed: the slowest, for as long as StallTimeout after its last reply.
	// The batch may be used again once the call above has returned.
	Done()
}

// done is called once for each node, after its answer or failure.
func (f *Fleet) done(b *Batch) {
	b.waiting--
	if b.waiting == 0 {
		if b.counted {
			b.counted = false
			f.under--
		}
		b.Owner.Done()
	}
}
