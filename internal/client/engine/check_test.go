package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/wire/command"
)

// TestCheck: what cannot be asked is refused, and nothing of it is queued.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*Op)
	}{
		{"no kind", func(op *Op) { op.Kind = 0 }},
		{"unknown kind", func(op *Op) { op.Kind = command.Kinds }},
		{"no Done", func(op *Op) { op.Done = nil }},
		{"empty key", func(op *Op) { op.Key = nil }},
		{"long key", func(op *Op) { op.Key = make([]byte, MaxKey+1) }},
		{"no TTL", func(op *Op) { op.TTL = 0 }},
		{"short TTL", func(op *Op) { op.TTL = MinTTL - 1 }},
		{"long TTL", func(op *Op) { op.TTL = MaxTTL + time.Millisecond }},
		{"negative TTL", func(op *Op) { op.TTL = -time.Second }},
	} {
		p := newScripted(t, 1)
		op := p.op(Acquire, "key")
		c.edit(&op.Op)
		require.Error(t, p.engine.Submit(&op.Op), c.name)
		require.Equal(t, clock.Never, op.Until, c.name)
		require.Empty(t, p.sent, c.name)
		p.idle()
	}
}

// TestCheckRounds: the TTL is whole milliseconds, rounded down, on the wire and
// in the validity.
func TestCheckRounds(t *testing.T) {
	p := newScripted(t, 1)
	p.engine.timeout = 0
	op := p.op(Acquire, "key")
	op.TTL, op.Key = 100*time.Millisecond+999*time.Microsecond, make([]byte, MaxKey)
	require.NoError(t, p.engine.Submit(&op.Op))
	require.Contains(t, p.sent[0].bytes, "$2\r\nPX\r\n$3\r\n100\r\n")
	require.Equal(t, clock.Instant(97*time.Millisecond), op.Until)
	require.Equal(t, 5*time.Millisecond, op.Timeout)
}
