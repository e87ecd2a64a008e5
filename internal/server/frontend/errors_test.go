package frontend

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTexts: the text for clients of Redis is the same a second later, and has no name of Go.
func TestTexts(t *testing.T) {
	for in, want := range map[string]string{
		"redlock: no quorum (2 of 3 nodes failed: a:1 up for 2s, MaxTTL is 1m0s: no vote for 1m0.5s, b:1 restarted, up for 3ms: no vote for 58.25s)": "no quorum (2 of 3 nodes failed: a:1 -max-ttl is 1m0s: no vote, b:1 restarted: no vote)",
		"no vote for 1m0s": "no vote",
		"a:1 node may have forgotten fencing tokens, and has no vote yet: its quarantine ends in 1.5s, restart no other node until then":                    "a:1 node may have forgotten fencing tokens, and has no vote yet, restart no other node until then",
		"no quorum of NextNodes (a:1 no answer within 500ms (NodeTimeout)); the lock may be released nevertheless: then another Release returns ErrNotHeld": "no quorum of -next-nodes (a:1 no answer within 500ms (-node-timeout)); the lock may be released nevertheless: then another release finds no lock",
		"an operator must call RecoverFencing, InitFencing for a new fleet":                                                                                 "an operator must call redlock fence recover, redlock fence init for a new fleet",
	} {
		require.Equal(t, want, text(errors.New(in)))
	}
}
