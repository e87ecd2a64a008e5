package fleet

import (
	"cmp"
	"errors"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/wire/refusal"
	"github.com/redlock-go/redlock/resp"
)

// errNoHello: the server has no HELLO, or our user may not use it. It is greeted in
// RESP2 then.
var errNoHello = errors.New("server does not know HELLO")

// defaultUser is the user of a connection without a name. A password without a user is its password.
const defaultUser = "default"

// introduction returns the commands for login and client name: one in RESP3, one for each in RESP2.
func (g *greeter) introduction() (gs []greeting) {
	if !g.hello {
		if g.secret() {
			args := []string{"AUTH", g.user, g.password}
			if g.user == "" {
				args = []string{"AUTH", g.password} // the only form before Redis 6
			}
			gs = append(gs, greeting{args, authenticated})
		}
		if g.cfg.Name != "" {
			gs = append(gs, greeting{[]string{"CLIENT", "SETNAME", g.cfg.Name}, bestEffort})
		}
		return gs
	}
	args := []string{"HELLO", "3"}
	if g.secret() {
		args = append(args, "AUTH", cmp.Or(g.user, defaultUser), g.password)
	}
	if g.cfg.Name != "" {
		args = append(args, "SETNAME", g.cfg.Name)
	}
	gs = append(gs, greeting{args, g.welcomed})
	if g.secret() && g.user == "" {
		// In HELLO a server without a password accepts any. AUTH with a password
		// alone is an error there.
		gs = append(gs, greeting{[]string{"AUTH", g.password}, authenticated})
	}
	return gs
}

// welcomed reads the answer to HELLO. The text of an error is not kept.
func (g *greeter) welcomed(v *resp.Value) error {
	if v.IsError() {
		r := refusal.Read(v)
		switch {
		case r.Code == "NOAUTH" && !g.secret():
			return refusal.ErrNoLogin
		case r.Code == "NOAUTH": // a proxy that takes AUTH before any other command
			return errNoHello
		case !r.Fatal && !r.Later:
			return errNoHello
		}
		return refusal.Redact(r.Err)
	}
	// A server that stays in RESP2 sends the map as an array.
	if v.Kind != resp.Map && v.Kind != resp.Array || v.Null {
		return refusal.ErrUnfit
	}
	g.id.resp3 = v.Kind == resp.Map
	return g.id.readHello(v)
}

// authenticated judges the answer to AUTH. None of it is kept.
func authenticated(v *resp.Value) error {
	if v.IsOK() {
		return nil
	}
	if r := refusal.Read(v); r.Fatal {
		return refusal.Redact(r.Err) // it may have hung up before it was asked
	}
	return conn.ErrAuth
}
