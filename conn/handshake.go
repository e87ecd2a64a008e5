package conn

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/redlock-go/redlock/internal/base/build"
	"github.com/redlock-go/redlock/internal/wire/refusal"
	"github.com/redlock-go/redlock/resp"
	"github.com/valyala/bytebufferpool"
)

// libraryName is the library in CLIENT LIST.
const libraryName = "redlock-go"

// greeting is one command of the handshake, with the check of its reply.
type greeting struct {
	args  []string
	check func(reply *resp.Value) error
}

// defaultUser is the user of a connection without a name. A password without a user is its password.
const defaultUser = "default"

// secret reports whether the handshake has a password. Then errors show no answer, since
// a server may repeat the command.
func (t *try) secret() bool { return t.user != "" || t.password != "" }

// greet does the handshake of a new connection. All of it is written at once, and the replies are read one
// by one. Bytes after the last reply are an error, since they answer no command.
func (t *try) greet() error {
	greetings := t.greetings()
	out := bytebufferpool.Get()
	defer bytebufferpool.Put(out)
	for _, g := range greetings {
		out.B = resp.AppendCommand(out.B, g.args...)
	}
	began := t.fleet.now()
	_, err := t.nc.Write(out.B)
	clear(out.B)                   // a password may be in it, and the pool is the whole process's
	if err != nil && !isEnd(err) { // else an answer may have come before the end: why
		return err
	}
	t.id.resp3 = !t.old // until HELLO is answered
	t.stream = stream{in: make([]byte, readBuffer)}
	for i, g := range greetings {
		if err := t.reply(); err != nil {
			t.hungUp = isEnd(err) && !t.welcome
			if i == 0 {
				err = noAnswer(err, t.addr.TLS)
			}
			return err
		}
		if !t.answered {
			t.answered, t.id.trip = true, t.fleet.now().Sub(began)
		}
		if err := g.check(&t.value); err != nil {
			refused := refusal.Read(&t.value)
			if t.secret() {
				err = refusal.Redact(err)
			}
			if refused.Stays() && !permanent(err) {
				err = fmt.Errorf("%w: %w", ErrRefused, err)
			}
			return err
		}
	}
	if t.form != nil {
		t.id.form = Form(t.form())
	}
	for t.r < t.w {
		if err := t.next(); err != nil || !t.id.resp3 || t.value.Kind != resp.Push {
			return ErrUnsolicited
		}
	}
	return nil
}

// noAnswer is the error where no answer came, or one in another protocol.
func noAnswer(err error, secure bool) error {
	var malformed *resp.ProtocolError
	switch {
	case errors.As(err, &malformed):
		return fmt.Errorf("%w (%w)", ErrNotRESP, err)
	case secure && isRejection(err):
		return fmt.Errorf("%w (%w)", ErrRejected, err)
	case isEnd(err):
		return hangUpError(err, secure)
	}
	return err
}

// hangUpError is the end of a connection in place of the first answer.
func hangUpError(err error, secure bool) error {
	text := "hung up without an answer, as a published port does without a server behind it"
	if !secure {
		text += ", or one that wants TLS (rediss://)"
	}
	return fmt.Errorf("%s: %w", text, err)
}

// greetings is all commands of the handshake: login, the client's name, the server's identity, the database, and the
// probes. They are the same for all servers: one that refuses HELLO stays in RESP2. INFO comes early: a server that must
// not be a node is refused for this reason and no other.
func (t *try) greetings() (all []greeting) {
	ask := func(check func(*resp.Value) error, words ...string) { all = append(all, greeting{words, check}) }
	switch {
	case t.user != "":
		ask(t.loggedIn, "AUTH", t.user, t.password)
	case t.password != "": // the only form before Redis 6; and an error where none is set
		ask(t.loggedIn, "AUTH", t.password)
	}
	name := t.fleet.cfg.Name
	switch {
	case t.old:
	case name != "": // here without a permission for CLIENT
		ask(t.welcomed, "HELLO", "3", "SETNAME", name)
	default:
		ask(t.welcomed, "HELLO", "3")
	}
	if name != "" {
		ask(bestEffort, "CLIENT", "SETNAME", name)
	}
	ask(bestEffort, "CLIENT", "SETINFO", "LIB-NAME", libraryName)
	ask(bestEffort, "CLIENT", "SETINFO", "LIB-VER", build.Read().Word())
	// One by one: before Redis 7 INFO takes a single section.
	ask(t.checkInfo, "INFO", "server")
	ask(t.checkRole, "INFO", "replication")
	ask(t.checkInfo, "INFO", "memory")
	if t.addr.Persistent {
		ask(t.checkInfo, "INFO", "persistence")
		ask(t.checkSync, "CONFIG", "GET", "appendfsync")
	}
	if t.addr.Database != 0 {
		ask(selected, "SELECT", strconv.Itoa(t.addr.Database))
	}
	if t.fleet.cfg.Looks && !t.old {
		ask(t.tracked, "CLIENT", "TRACKING", "ON", "OPTIN", "NOLOOP")
	}
	if probes := t.fleet.cfg.Probes; probes != nil {
		t.form = probes(ask)
	}
	return all
}

// loggedIn judges the answer to AUTH. None of it is kept.
func (t *try) loggedIn(v *resp.Value) error {
	if v.IsOK() {
		return nil
	}
	if r := refusal.Read(v); r.Fatal {
		return refusal.Redact(r.Err) // it may have hung up before it was asked
	}
	return ErrAuth
}

// welcomed reads the answer to HELLO.
func (t *try) welcomed(v *resp.Value) error {
	t.welcome = !v.IsError()        // a proxy may refuse it, and then hang up
	t.id.resp3 = v.Kind == resp.Map // a server that stays in RESP2 sends the map as an array
	switch r := refusal.Read(v); {
	case r.Code == "NOAUTH" && !t.secret():
		return refusal.ErrNoLogin
	case r.Code != "NOAUTH" && (r.Fatal || r.Later): // else it is a proxy that takes AUTH before any other command
		return r.Err
	case v.IsError():
		return nil
	case v.Kind != resp.Map && v.Kind != resp.Array || v.Null:
		return refusal.ErrUnfit
	}
	for it := v.Elements(); it.Next(); { // names and values, some of these nested
		name := string(it.Value().Bytes)
		it.Next()
		if err := t.id.note(name, string(it.Value().Bytes)); err != nil {
			return err
		}
	}
	return nil
}

// bestEffort accepts an error, unless it ends the connection: where the login failed the answer is NOAUTH.
func bestEffort(v *resp.Value) error { return refusal.Read(v).Fatality() }

// checkInfo reads a section of INFO. Where INFO is forbidden or unknown to the server, its identity stays unknown: no
// error.
func (t *try) checkInfo(v *resp.Value) error {
	switch {
	case v.IsError():
		r := refusal.Read(v)
		switch {
		case r.Fatal || r.Later:
			return r.Err // LOADING and the like: not a node to ask for locks
		case r.Lacks || r.OfKey:
			r.Err = refusal.Lacks("info")
		case t.secret():
			r.Err = refusal.Redact(r.Err)
		}
		t.id.Err = cmp.Or(t.id.Err, r.Err)
		return nil
	case v.Kind != resp.Bulk && v.Kind != resp.Verbatim || v.Null:
		return refusal.ErrUnfit
	}
	return t.id.noteInfo(v)
}

// checkRole reads the section of INFO asked for again.
func (t *try) checkRole(v *resp.Value) error {
	t.id.looks = len(v.Bytes) <= maxLook && !v.IsError()
	return t.checkInfo(v)
}

// tracked notes whether the server will say that all its keys are gone: see look.go.
func (t *try) tracked(v *resp.Value) error {
	t.id.tracks = v.IsOK() && t.id.resp3
	return bestEffort(v)
}

// checkSync reads a setting. Where CONFIG is forbidden or unknown, as often, the node's operator is believed.
func (t *try) checkSync(v *resp.Value) error {
	if v.IsError() || v.Null {
		return bestEffort(v)
	}
	it := v.Elements()
	if !it.Next() || string(it.Value().Bytes) != "appendfsync" || !it.Next() {
		return nil
	}
	if sync := word(string(it.Value().Bytes)); sync != "always" && t.id.volatile == "" {
		t.id.volatile = "appendfsync " + sync
	}
	return nil
}

func selected(v *resp.Value) error {
	switch {
	case v.IsOK():
		return nil
	case !v.IsError():
		return refusal.ErrUnfit
	}
	r := refusal.Read(v)
	if r.Lacks || r.OfKey {
		return refusal.Lacks("select")
	}
	return r.Err
}

// reply reads the next reply into value. Pushes answer no command.
func (t *try) reply() error {
	for {
		err := t.next()
		switch {
		case err == nil && t.id.resp3 && t.value.Kind == resp.Push:
		case err != resp.ErrIncomplete:
			return err
		default:
			t.shift()
			n, err := t.nc.Read(t.in[t.w:])
			if err != nil && n == 0 {
				return err
			}
			t.w += n
		}
	}
}
