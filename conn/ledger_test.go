package conn

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/redlock-go/redlock/resp"
)

// ledger is a batch and what its owner hears of it. It fails the test for all that is
// against the rules of Owner.
type ledger struct {
	Batch
	t         *testing.T
	tags      []string
	nodes     []account
	due       int // nodes that have not ended
	doneCalls int

	lenient bool // a reply that does not fit is refused, as it should be
	onReply func(node, i int) error
	onFail  func(node, i int, err error)
}

var errMisfit = errors.New("reply does not fit")

type account struct {
	replies int
	ended   bool
	err     error
}

func newLedger(t *testing.T, tags []string) *ledger {
	l := &ledger{t: t, tags: tags}
	for _, tag := range tags {
		l.Buf = append(l.Buf, encode("ECHO", tag)...)
	}
	l.Replies = len(tags)
	l.Owner = l
	return l
}

// echoes are the replies to commands with these tags.
func echoes(tags ...string) string {
	var b []byte
	for _, tag := range tags {
		b = resp.AppendBulkString(b, tag)
	}
	return string(b)
}

func (l *ledger) Reply(node, i int, v *resp.Value) error {
	a := &l.nodes[node]
	assert.Zero(l.t, l.doneCalls, "a reply after Done")
	assert.False(l.t, a.ended, "a reply after the last, or after Fail")
	assert.Equal(l.t, a.replies, i, "replies come in order")
	misfit := string(v.Bytes) != l.tags[i] || v.Kind != resp.Bulk || v.Null
	if misfit && !l.lenient {
		assert.Failf(l.t, "misplaced", "node %d, reply %d: %.40q for %.40q", node, i, v.Bytes, l.tags[i])
	}
	a.replies++
	if a.replies == l.Replies {
		l.end(a)
	}
	if misfit {
		return errMisfit
	}
	if l.onReply != nil {
		return l.onReply(node, i)
	}
	return nil
}

func (l *ledger) Fail(node, i int, err error) {
	a := &l.nodes[node]
	assert.Zero(l.t, l.doneCalls, "a failure after Done")
	assert.False(l.t, a.ended, "a failure after the last reply, or a second one")
	assert.Equal(l.t, a.replies, i, "Fail begins behind the last reply")
	assert.Error(l.t, err)
	a.err = err
	l.end(a)
	if l.onFail != nil {
		l.onFail(node, i, err)
	}
}

func (l *ledger) end(a *account) {
	a.ended = true
	l.due--
}

func (l *ledger) Done() {
	l.doneCalls++
	assert.Zero(l.t, l.due, "done before every node has ended")
}

func (l *ledger) errOf(node int) error { return l.nodes[node].err }
