package holding

import (
	"crypto/rand"
	"crypto/subtle"

	"github.com/redlock-go/redlock/internal/wire/token"
)

// veiled is a token in memory behind a Hold. A struct with a Lock in an unexported field can be printed with an unfit
// verb: package fmt then calls no method of the Lock, and follows its pointers by one step. It finds a token combined
// with random bytes of this process.
type veiled token.Token

var veilOfProcess = func() (v veiled) {
	_, _ = rand.Read(v[:]) // it never fails
	return v
}()

func veil(t token.Token) (v veiled) {
	subtle.XORBytes(v[:], t[:], veilOfProcess[:])
	return v
}

func (v veiled) unveil() token.Token { return token.Token(veil(token.Token(v))) }
