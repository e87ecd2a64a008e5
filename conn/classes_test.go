package conn

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/wire/refusal"
)

func TestPermanentAndMisconfigured(t *testing.T) {
	for err, want := range map[error][2]bool{
		ErrSameServer: {true, true}, ErrNotMaster: {true, true}, ErrCluster: {true, true}, ErrSentinel: {true, true},
		ErrNotRESP: {true, false}, ErrNotTLS: {true, false}, ErrRefused: {true, false}, ErrUntrusted: {true, false}, ErrTooOld: {true, false}, refusal.ErrProtected: {true, false},
		ErrAuth: {true, false}, refusal.ErrImpostor: {true, false}, ErrForbidden: {true, false}, refusal.Lacks("set"): {true, false},
		refusal.ErrCrowded: {}, ErrDown: {}, ErrOversized: {}, refusal.ErrUnfit: {},
	} {
		for _, err := range []error{err, &notSent{&Error{Addr: "a:1", Op: "dial", Err: err}}} {
			assert.Equal(t, want[0], permanent(err), err)
			assert.Equal(t, want[1], classOf(err, misfits) != nil, err)
		}
	}
	assert.False(t, permanent(nil))
	assert.False(t, classOf(nil, misfits) != nil)
}

// Each batch is failed at once by each node that is down.
func TestNotSentIsAskedForWithoutAllocating(t *testing.T) {
	var err error = &notSent{&Error{Addr: "a", Op: "dial", Err: ErrDown}}
	var is, isDown bool
	require.Zero(t, testing.AllocsPerRun(100, func() { is, isDown = errors.Is(err, ErrNotSent), errors.Is(err, ErrDown) }))
	require.True(t, is)
	require.True(t, isDown)
}
