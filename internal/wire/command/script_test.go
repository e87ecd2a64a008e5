package command

import (
	"crypto/sha1"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDigestsAreThoseOfTheScripts(t *testing.T) {
	digest := func(text string) string {
		sum := sha1.Sum([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	assert.Equal(t, ReleaseSHA1, digest(ReleaseScript))
	assert.Equal(t, ExtendSHA1, digest(ExtendScript))
}

// An unauthenticated client may send at most 16 KiB in one bulk string.
func TestScriptsAreSmall(t *testing.T) {
	assert.Less(t, len(ReleaseScript), 1024)
	assert.Less(t, len(ExtendScript), 1024)
}
