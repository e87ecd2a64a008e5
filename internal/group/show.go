package group

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
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
