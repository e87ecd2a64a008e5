package group

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
)

// shownKey bounds the bytes of a key in texts. A key may have kilobytes.
const shownKey = 64

// Quote is a key as texts show it: quoted, and cut where it is long.
func Quote(key string) string {
	if len(key) > shownKey {
		return strconv.Quote(key[:shownKey]) + "..."
	}
	return strconv.Quote(key)
}

// Digest names the value at a key without telling it: with the token in it a lock can be
// released. The digest tells two holders of a key apart.
func Digest(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:4])
}

// Text shows the lock without its token.
func (h Handle) Text() string {
	return fmt.Sprintf("lock %s, %v left, token digest %s", Quote(h.key), h.Remaining(), h.Digest())
}

// OpText shows an operation without its token.
func OpText(kind engine.Kind, key []byte, ttl time.Duration, token []byte) string {
	return fmt.Sprintf("%s %s, ttl %v, token digest %s", KindName(kind), Quote(string(key)), ttl, Digest(token))
}

// KindName names the kinds that users know.
func KindName(kind engine.Kind) string {
	if kind > engine.Release {
		return "unknown"
	}
	return kind.String()
}
