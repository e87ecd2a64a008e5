package group

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/token"
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

// Digest is that of the value at the keys, or "".
func (h Handle) Digest() string {
	if value := h.Value(); value != "" {
		return Digest([]byte(value))
	}
	return ""
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

// veiled is a token in the memory that a Handle points to. A struct with a Lock in an
// unexported field can be printed with a verb that does not fit: package fmt then calls
// no method of the Lock, and follows its pointers by one step. It finds a token combined
// with random bytes of this process.
type veiled token.Token

var veilOfProcess = func() (v veiled) {
	_, _ = rand.Read(v[:]) // it never fails
	return v
}()

func veil(t token.Token) (v veiled) {
	for i, b := range veilOfProcess {
		v[i] = t[i] ^ b
	}
	return v
}

func (v veiled) unveil() token.Token { return token.Token(veil(token.Token(v))) }
