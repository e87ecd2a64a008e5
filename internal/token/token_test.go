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

	"github.com/redlock-go/redlock/internal/token"
)

// TestFillIsBase64 checks the form against encoding/base64, both ways, and that
// all 16 bytes of the reader and no others are used.
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
		require.NoError(t, tok.Fill(r))
		require.Equal(t, 4, r.Len(), "read for exactly 16 bytes")
		require.Equal(t, base64.RawURLEncoding.EncodeToString(raw), tok.String())
		back, err := base64.RawURLEncoding.Strict().DecodeString(tok.String())
		require.NoError(t, err)
		require.Equal(t, raw, back)
	}
	require.Equal(t, token.Size, base64.RawURLEncoding.EncodedLen(16))
}

// TestFillIsRandom fills many tokens, from several goroutines: no two are the
// same, and every one of the 128 bits takes both values about equally often.
func TestFillIsRandom(t *testing.T) {
	const writers, each = 4, 5000
	var (
		mu      sync.Mutex
		seen    = make(map[token.Token]bool)
		ones    [128]int
		fillers sync.WaitGroup
	)
	for _, r := range []io.Reader{nil, rand.Reader} {
		for range writers / 2 {
			fillers.Add(1)
			go func() {
				defer fillers.Done()
				for range each {
					var tok token.Token
					if err := tok.Fill(r); err != nil {
						t.Error(err)
						return
					}
					raw, err := base64.RawURLEncoding.DecodeString(tok.String())
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					seen[tok] = true
					for i := range ones {
						ones[i] += int(raw[i/8] >> (i % 8) & 1)
					}
					mu.Unlock()
				}
			}()
		}
	}
	fillers.Wait()
	require.Len(t, seen, writers*each, "the same token twice")
	for i, n := range ones {
		// 20,000 tosses have a deviation of 71; 700 is ten of them.
		require.InDelta(t, writers*each/2, n, 700, "bit %d", i)
	}
}

// TestFillIsDeterministic: the same reader gives the same tokens, each from
// fresh bytes, however the reader cuts them up.
func TestFillIsDeterministic(t *testing.T) {
	one := mathrand.NewChaCha8([32]byte{7})
	same := iotest.OneByteReader(mathrand.NewChaCha8([32]byte{7}))
	var a, b, last token.Token
	for range 100 {
		require.NoError(t, a.Fill(one))
		require.NoError(t, b.Fill(same))
		require.Equal(t, a, b)
		require.NotEqual(t, last, a)
		last = a
	}
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

func BenchmarkFill(b *testing.B) {
	for name, r := range map[string]io.Reader{
		"system":   nil,
		"injected": mathrand.NewChaCha8([32]byte{}),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var tok token.Token
			for b.Loop() {
				if err := tok.Fill(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFillParallel(b *testing.B) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var tok token.Token
		for pb.Next() {
			if err := tok.Fill(nil); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
