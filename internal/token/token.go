// Package token makes the random values that prove who holds a lock.
//
// A token is stored at the key by the node that grants, and a node extends or
// deletes the key only for a caller that shows the same token. Every attempt
// takes a fresh one, a retry too: were a token used twice, the late release of
// the first attempt would delete the lock that the second one won.
//
// Source: https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
// ("Correct Implementation with a Single Instance"), which asks for a value
// unique across all clients and all requests.
package token

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"sync"
)

// Size is the length of a token in bytes: 16 random bytes (128 bits) in raw
// URL-safe base64. All of them are printable, so a key can be read with
// redis-cli, and none needs escaping in a log line or a test script.
const Size = 22

// entropy is how many random bytes a token is made of.
const entropy = 16

// Token is a value to prove ownership with. It is an array, so that it lives
// inside what it belongs to and is compared with ==. The zero value is not a
// token.
type Token [Size]byte

// Fill makes t a fresh token from r, or from the operating system's random
// source (crypto/rand) when r is nil or is crypto/rand.Reader. It does not
// allocate, wherever t lives.
//
// crypto/rand is asked for every token anew. Bytes kept in a pool of our own
// would be cheaper, but the copy of a process (a cloned or restored virtual
// machine) would hold the same pool, and the two would then hand out the same
// tokens and release each other's locks. The system's source is reseeded when
// the machine is told that it was cloned; a pool is not.
//
// Any other r is for tests that need the same tokens again; it is read for
// exactly 16 bytes. If it ends or fails before that, Fill returns its error and
// leaves t as it was. With crypto/rand there is no error: a system without
// randomness ends the process.
func (t *Token) Fill(r io.Reader) error {
	if r == nil || r == rand.Reader {
		var raw [entropy]byte
		rand.Read(raw[:])
		t.encode(&raw)
		return nil
	}
	return t.fillFrom(r)
}

// scratch holds buffers to read into from a reader we do not know. Such a
// reader might keep what it is given, so the buffer cannot be on the stack; and
// were it t itself, every token anywhere would have to be on the heap.
var scratch = sync.Pool{New: func() any { return new([entropy]byte) }}

// fillFrom is Fill for an injected reader.
func (t *Token) fillFrom(r io.Reader) error {
	raw := scratch.Get().(*[entropy]byte)
	defer scratch.Put(raw)
	if _, err := io.ReadFull(r, raw[:]); err != nil {
		return fmt.Errorf("token: reading randomness: %w", err)
	}
	t.encode(raw)
	return nil
}

// encode sets t to the base64 form of raw.
func (t *Token) encode(raw *[entropy]byte) {
	base64.RawURLEncoding.Encode(t[:], raw[:])
}

// String returns the token as text. It allocates; the hot path sends t[:].
//
// A token is all that is needed to release the lock it stands for, so it belongs in no
// error and no log line.
func (t *Token) String() string { return string(t[:]) }
