package conn

import (
	"cmp"
	"errors"

	"github.com/redlock-go/redlock/internal/refusal"
	"github.com/redlock-go/redlock/resp"
)

// errNoHello says that a server does not speak RESP3, or not with us. It is
// greeted in RESP2 then.
var errNoHello = errors.New("server does not know HELLO")

// defaultUser is whose password a password alone is, and who everybody is to a
// server without users.
const defaultUser = "default"

// introduction says who we are. In RESP3 one command says all of it, in RESP2
// each thing has its own. A name that servers would refuse is left out: it must
// not cost the connection.
func (g *greeter) introduction() (gs []greeting) {
	if !g.hello {
		if g.secret() {
			args := []string{"AUTH", g.user, g.password}
			if g.user == "" {
				args = []string{"AUTH", g.password} // the only form before Redis 6
			}
			gs = append(gs, greeting{args, authenticated})
		}
		if isName(g.cfg.Name) {
			gs = append(gs, greeting{[]string{"CLIENT", "SETNAME", g.cfg.Name}, bestEffort})
		}
		return gs
	}
	args := []string{"HELLO", "3"}
	if g.secret() {
		args = append(args, "AUTH", cmp.Or(g.user, defaultUser), g.password)
	}
	if isName(g.cfg.Name) {
		args = append(args, "SETNAME", g.cfg.Name)
	}
	gs = append(gs, greeting{args, g.welcomed})
	if g.secret() && g.user == "" {
		// A server without a password takes any in HELLO. Here it objects.
		gs = append(gs, greeting{[]string{"AUTH", g.password}, authenticated})
	}
	return gs
}

// welcomed takes in the answer to HELLO. None of an error's text is kept.
func (g *greeter) welcomed(v *resp.Value) error {
	if v.IsError() {
		fatal, err := refusal.Read(v.Bytes)
		switch code := string(v.Code()); {
		case code == "NOAUTH" && !g.secret():
			return refusal.ErrNoLogin
		case !fatal && (code == "ERR" || code == "NOPERM" || code == "NOPROTO"):
			return errNoHello
		}
		return refusal.Redact(err)
	}
	// A map is an array to servers that go on in RESP2.
	if v.Kind != resp.Map && v.Kind != resp.Array || v.Null {
		return refusal.ErrUnfit
	}
	return g.id.readHello(v)
}

// authenticated judges the answer to AUTH. None of it is kept.
func authenticated(v *resp.Value) error {
	if v.IsOK() {
		return nil
	}
	if v.IsError() {
		if err := refusal.Fatality(v.Bytes); err != nil {
			return refusal.Redact(err) // it may have hung up before it was asked
		}
	}
	return ErrAuth
}

// isName says whether servers take a name for a client: printable, and without
// spaces.
func isName(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}
