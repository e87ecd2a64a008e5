package command

import (
	"crypto/sha1"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDigestsAreThoseOfTheScripts(t *testing.T) {
	for digest, text := range texts {
		sum := sha1.Sum([]byte(text))
		assert.Equal(t, digest, hex.EncodeToString(sum[:]))
		assert.Less(t, len(text), 4096, "an unauthenticated client may send at most 16 KiB in one bulk string")
	}
}
