package conn

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/redlock-go/redlock/internal/refusal"
)

func TestPermanentAndMisconfigured(t *testing.T) {
	for err, want := range map[error][2]bool{
		ErrSameServer: {true, true}, ErrNotMaster: {true, true}, ErrCluster: {true, true}, ErrSentinel: {true, true},
		ErrNotRESP: {true, false}, ErrNotTLS: {true, false}, ErrRefused: {true, false}, ErrUntrusted: {true, false}, refusal.ErrProtected: {true, false},
		ErrAuth: {true, false}, refusal.ErrImpostor: {true, false}, ErrForbidden: {true, false}, refusal.Lacks("set"): {true, false},
		refusal.ErrCrowded: {}, ErrDown: {}, ErrOversized: {}, refusal.ErrUnfit: {},
	} {
		for _, err := range []error{err, &notSent{&Error{Addr: "a:1", Op: "dial", Err: err}}} {
			assert.Equal(t, want[0], Permanent(err), err)
			assert.Equal(t, want[1], Misconfigured(err), err)
		}
	}
	assert.False(t, Permanent(nil))
	assert.False(t, Misconfigured(nil))
}
