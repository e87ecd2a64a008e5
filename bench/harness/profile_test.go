package harness

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShareOfAProfile(t *testing.T) {
	require.InDelta(t, 0.342, shareOf([]byte("Active filters:\n   focus=x\nShowing nodes accounting for 1.06s, 34.19% of 3.10s total\n      flat")), 0)
	require.Zero(t, shareOf([]byte("Showing nothing")))
}
