package fleet

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/wire/refusal"
)

func TestPermanentAndMisconfigured(t *testing.T) {
	for err, want := range map[error][2]bool{
		conn.ErrSameServer: {true, true}, conn.ErrNotMaster: {true, true}, conn.ErrCluster: {true, true}, conn.ErrSentinel: {true, true},
		conn.ErrNotRESP: {true, false}, conn.ErrNotTLS: {true, false}, conn.ErrRefused: {true, false}, conn.ErrUntrusted: {true, false}, conn.ErrTooOld: {true, false}, refusal.ErrProtected: {true, false},
		conn.ErrAuth: {true, false}, refusal.ErrImpostor: {true, false}, conn.ErrForbidden: {true, false}, refusal.Lacks("set"): {true, false},
		refusal.ErrCrowded: {}, conn.ErrDown: {}, conn.ErrOversized: {}, refusal.ErrUnfit: {},
	} {
		for _, err := range []error{err, &notSent{&conn.Error{Addr: "a:1", Op: "dial", Err: err}}} {
			assert.Equal(t, want[0], permanent(err), err)
			assert.Equal(t, want[1], classOf(err, misfits) != nil, err)
		}
	}
	assert.False(t, permanent(nil))
	assert.False(t, classOf(nil, misfits) != nil)
}

// Each batch is failed at once by each node that is down.
func TestNotSentIsAskedForWithoutAllocating(t *testing.T) {
	var err error = &notSent{&conn.Error{Addr: "a", Op: "dial", Err: conn.ErrDown}}
	var is, isDown bool
	require.Zero(t, testing.AllocsPerRun(100, func() { is, isDown = errors.Is(err, conn.ErrNotSent), errors.Is(err, conn.ErrDown) }))
	require.True(t, is)
	require.True(t, isDown)
}
