// Package token makes random values: the proofs that a client holds a lock.
//
// A granting node stores the token at the key, and extends or deletes the key only for a caller
// with the same token. Each attempt takes a fresh one, also a retry: with the same token, a late
// release of the first attempt would delete the lock won by the second.
//
// Source: https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/ ("Correct Implementation with a Single
// Instance").
package token

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
)

// Size is the length of a token in bytes: 16 random bytes (128 bits) in raw URL-safe base64. All
// of them are printable, and none needs escaping.
const Size = 22

// NameMark stands between a token and the name of its holder, in the value at a key. No token contains it.
const NameMark = "@"

// entropy is the number of random bytes in a token.
const entropy = 16

// Token proves ownership of a lock. It is an array, so it lies within its owner and compares with
// ==. The zero value is no token.
type Token [Size]byte

// Fill makes t a fresh token from r, or from the operating system's random source (crypto/rand)
// when r is nil or is crypto/rand.Reader. Then it does not allocate, wherever t lives.
//
// Each token is read from crypto/rand. Of a pool of random bytes a cloned or restored virtual machine would hold a copy,
// and the two would release each other's locks. The system reseeds its source in a cloned machine.
//
// Any other r is for tests with reproducible tokens; exactly 16 bytes are read. If it ends or fails before, Fill returns
// its error and leaves t as it was. With crypto/rand there is no error: a system without randomness ends the process.
func (t *Token) Fill(r io.Reader) error {
	if r == nil || r == rand.Reader {
		var raw [entropy]byte
		rand.Read(raw[:])
		base64.RawURLEncoding.Encode(t[:], raw[:])
		return nil
	}
	raw := make([]byte, entropy) // a reader might keep it
	if _, err := io.ReadFull(r, raw); err != nil {
		return fmt.Errorf("token: reading randomness: %w", err)
	}
	base64.RawURLEncoding.Encode(t[:], raw)
	return nil
}

// Split returns the token at the beginning of a value, and the tail. A value shorter than a token, from another
// library, is all tail.
func Split(value string) (t Token, tail string) {
	if len(value) < Size {
		return Token{}, value
	}
	return t, value[copy(t[:], value):]
}

// Join is the value of a token and its tail.
func Join(t Token, tail string) string {
	if t == (Token{}) {
		return tail
	}
	return t.String() + tail
}

// String returns the token as text. It allocates; the hot path sends t[:].
//
// With a token anyone can release its lock, so it must not appear in errors and log lines.
func (t *Token) String() string { return string(t[:]) }
