package token_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/wire/token"
)

// TestFillIsBase64 checks the form against encoding/base64, both ways, and the use of all 16 bytes of the reader and no
// others, however it cuts them up.
func TestFillIsBase64(t *testing.T) {
	source := mathrand.NewChaCha8([32]byte{1})
	inputs := [][]byte{make([]byte, 16), bytes.Repeat([]byte{0xff}, 16)}
	for range 1000 {
		raw := make([]byte, 16)
		source.Read(raw)
		inputs = append(inputs, raw)
	}
	for _, raw := range inputs {
		var tok token.Token
		r := bytes.NewReader(append(bytes.Clone(raw), "more"...))
		require.NoError(t, tok.Fill(iotest.OneByteReader(r)))
		require.Equal(t, 4, r.Len(), "read for exactly 16 bytes")
		require.Equal(t, base64.RawURLEncoding.EncodeToString(raw), tok.String())
		back, err := base64.RawURLEncoding.Strict().DecodeString(tok.String())
		require.NoError(t, err)
		require.Equal(t, raw, back)
	}
	require.Equal(t, token.Size, base64.RawURLEncoding.EncodedLen(16))
}

// TestFillIsFresh: of many tokens, filled by several goroutines, no two are the same.
func TestFillIsFresh(t *testing.T) {
	var seen sync.Map
	var fillers sync.WaitGroup
	for _, r := range []io.Reader{nil, nil, rand.Reader, rand.Reader} {
		fillers.Add(1)
		go func() {
			defer fillers.Done()
			for range 5000 {
				var tok token.Token
				if err := tok.Fill(r); err != nil {
					t.Error(err)
				}
				if _, twice := seen.LoadOrStore(tok, true); twice {
					t.Error("the same token twice")
				}
			}
		}()
	}
	fillers.Wait()
}

// TestFillFails: half a token is no token.
func TestFillFails(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		r    io.Reader
		want error
	}{
		{bytes.NewReader(nil), io.EOF},
		{bytes.NewReader(make([]byte, 15)), io.ErrUnexpectedEOF},
		{iotest.ErrReader(broken), broken},
		{io.MultiReader(bytes.NewReader(make([]byte, 15)), iotest.ErrReader(broken)), broken},
	} {
		var tok token.Token
		require.NoError(t, tok.Fill(nil))
		before := tok
		require.ErrorIs(t, tok.Fill(c.r), c.want)
		require.Equal(t, before, tok)
	}
}
