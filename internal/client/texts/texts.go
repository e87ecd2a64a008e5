// Package texts makes the errors and texts for users, from the results of the other rooms.
//
// No text has a token in it, since it could release a lock, or a credential; a long key is cut. A node is named once,
// also where the layers between have added its name. An error wraps its causes, for errors.Is and errors.As to find.
package texts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/client/engine"
)

// shownKey bounds the bytes of a key in texts. A key may have kilobytes.
const shownKey = 64

// Quote is a key as shown in texts: quoted, and cut if long.
func Quote(key string) string {
	if len(key) > shownKey {
		return strconv.Quote(key[:shownKey]) + "..."
	}
	return strconv.Quote(key)
}

// Digest stands for the value at a key, since the value could release the lock. It distinguishes two holders of a
// key.
func Digest(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:4])
}

// Rounded is a duration as people read it: to a tenth of a second, or of a millisecond below a second.
func Rounded(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}

// Lock shows a lock without its token.
func Lock(key string, left time.Duration, digest string) string {
	return fmt.Sprintf("lock %s, %v left, token digest %s", Quote(key), Rounded(left), digest)
}

// Op shows an operation without its token.
func Op(kind fmt.Stringer, key []byte, ttl time.Duration, token string) string {
	return fmt.Sprintf("%s %s, ttl %v, token digest %s", kind, Quote(string(key)), ttl, Digest([]byte(token)))
}

// Kind names the public kinds.
func Kind(kind engine.Kind, shared bool) string {
	switch {
	case kind > engine.Release:
		return "unknown"
	case shared:
		return kind.String() + " shared"
	}
	return kind.String()
}

// Redact returns nodes without credentials. An address that cannot be parsed is left out, since any part of it may be
// a password.
func Redact(nodes []string) []string {
	shown := make([]string, len(nodes))
	for i, text := range nodes {
		shown[i] = "(not an address)"
		if a, err := conn.ParseAddresses([]string{text}); err == nil {
			shown[i] = a[0].String()
		}
	}
	return shown
}

// RedactAll is Redact for several lists.
func RedactAll(groups [][]string) (shown [][]string) {
	for _, nodes := range groups {
		shown = append(shown, Redact(nodes))
	}
	return shown
}
