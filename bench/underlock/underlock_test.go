package underlock

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLocksShare(t *testing.T) {
	require.InDelta(t, 34.19, focused([]byte("Active filters:\n   focus=x\nShowing nodes accounting for 1.06s, 34.19% of 3.10s total\n      flat")), 0)
	require.Zero(t, focused([]byte("Showing nothing")))
}
