//go:build !race

package token_test

import (
	"crypto/rand"
	"io"
	mathrand "math/rand/v2"
	"testing"

	"github.com/redlock-go/redlock/internal/wire/token"
)

// TestAllocatesNothing fills a token on the stack, the hard case: an unknown reader must not get a
// part of it. It is not built with the race detector: there a sync.Pool drops things on purpose.
func TestAllocatesNothing(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"nil":         nil,
		"rand.Reader": rand.Reader,
		"injected":    mathrand.NewChaCha8([32]byte{}),
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
