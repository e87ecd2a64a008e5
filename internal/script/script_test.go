package script

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
	assert.Equal(t, ReleaseSHA1, digest(Release))
	assert.Equal(t, ExtendSHA1, digest(Extend))
}

// An unauthenticated client may send at most 16 KiB in one bulk string.
func TestScriptsAreSmall(t *testing.T) {
	assert.Less(t, len(Release), 1024)
	assert.Less(t, len(Extend), 1024)
}
