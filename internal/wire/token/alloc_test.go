//go:build !race

package token_test

import (
	"crypto/rand"
	"io"
	"testing"

	"github.com/redlock-go/redlock/internal/wire/token"
)

// TestAllocatesNothing fills a token on the stack, the hard case. With the race detector crypto/rand allocates.
func TestAllocatesNothing(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"nil":         nil,
		"rand.Reader": rand.Reader,
	} {
		got := testing.AllocsPerRun(1000, func() {
			var tok token.Token
			if err := tok.Fill(r); err != nil {
				t.Error(err)
			}
		})
		if got != 0 {
			t.Errorf("%s: %v allocations, want 0", name, got)
		}
	}
}
