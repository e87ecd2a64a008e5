package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/wire/refusal"
	"github.com/redlock-go/redlock/resp"
	"github.com/valyala/bytebufferpool"
)

// The library's name and version in CLIENT LIST.
const (
	libraryName    = "redlock-go"
	libraryVersion = "0.1.0"
)

// greeting is one command of the handshake, with the check of its reply.
type greeting struct {
	args  []string
	check func(reply *resp.Value) error
}

// greeter is the state of one handshake.
type greeter struct {
	cfg      *Config
	database int
	hello    bool // speak RESP3
	login
	id   identity
	form func() uint16 // once all is answered; nil: 0
}

// secret reports whether the handshake has a password. Then errors show no answer, since
// a server may repeat the command.
func (g *greeter) secret() bool { return g.user != "" || g.password != "" }

// greet does the handshake of a new connection: login, the server's identity, the
// database, and the probes. All of it is written at once, and the replies are read one
// by one. Bytes after the last reply are an error, since they answer no command.
func (t *try) greet(nc net.Conn, l login) (identity, error) {
	g := greeter{cfg: &t.fleet.cfg, database: t.addr.Database, hello: !t.old, login: l}
	greetings := g.greetings()
	out := bytebufferpool.Get()
	defer bytebufferpool.Put(out)
	for _, gr := range greetings {
		out.B = appendCommand(out.B, gr.args...)
	}
	_, err := nc.Write(out.B)
	clear(out.B)                   // a password may be in it, and the pool is the whole process's
	if err != nil && !isEnd(err) { // else an answer may have come before the end: why
		return identity{}, err
	}
	r := replyReader{nc: nc, buf: make([]byte, readBuffer), pushes: g.hello}
	for i, gr := range greetings {
		reply, err := r.next()
		if err != nil {
			if i == 0 {
				err = noAnswer(err, t.addr.TLS)
			}
			return identity{}, err
		}
		t.answered = true
		if err := gr.check(reply); err != nil {
			refused := refusal.Read(reply)
			if g.secret() {
				err = refusal.Redact(err)
			}
			if refused.Stays() && err != errNoHello && !permanent(err) {
				err = fmt.Errorf("%w: %w", conn.ErrRefused, err)
			}
			return identity{}, err
		}
	}
	if g.form != nil {
		g.id.form = Form(g.form())
	}
	return g.id, r.end()
}

// noAnswer is the error where no answer came, or one in another protocol.
func noAnswer(err error, secure bool) error {
	var malformed *resp.ProtocolError
	switch {
	case errors.As(err, &malformed):
		return fmt.Errorf("%w (%w)", conn.ErrNotRESP, err)
	case secure && isRejection(err):
		return fmt.Errorf("%w (%w)", conn.ErrRejected, err)
	case isEnd(err):
		return &hangUpError{err, secure, false}
	}
	return err
}

// greetings is all commands of the handshake. INFO comes early: a server that must not be a node is refused for this
// reason and no other.
func (g *greeter) greetings() []greeting {
	gs := append(g.introduction(),
		greeting{[]string{"CLIENT", "SETINFO", "LIB-NAME", libraryName}, bestEffort},
		greeting{[]string{"CLIENT", "SETINFO", "LIB-VER", libraryVersion}, bestEffort},
		// One by one: before Redis 7 INFO takes a single section.
		greeting{[]string{"INFO", "server"}, g.checkInfo},
		greeting{[]string{"INFO", "replication"}, g.checkInfo},
		greeting{[]string{"INFO", "memory"}, g.checkInfo},
	)
	if g.database != 0 {
		gs = append(gs, greeting{[]string{"SELECT", strconv.Itoa(g.database)}, selected})
	}
	if g.cfg.Probes != nil {
		g.form = g.cfg.Probes(func(answer func(*resp.Value) error, words ...string) {
			gs = append(gs, greeting{words, answer})
		})
	}
	return gs
}

// bestEffort accepts an error, unless it ends the connection: where the login failed
// the answer is NOAUTH.
func bestEffort(v *resp.Value) error { return refusal.Read(v).Fatality() }

// checkInfo reads a section of INFO. Where INFO is forbidden or unknown to the server, its identity stays unknown: no
// error.
func (g *greeter) checkInfo(v *resp.Value) error {
	switch {
	case v.IsError():
		r := refusal.Read(v)
		switch {
		case r.Fatal || r.Later:
			return r.Err // LOADING and the like: not a node to ask for locks
		case r.Lacks || r.OfKey:
			r.Err = refusal.Lacks("info")
		case g.secret():
			r.Err = refusal.Redact(r.Err)
		}
		g.id.refused = cmp.Or(g.id.refused, r.Err)
		return nil
	case v.Kind != resp.Bulk && v.Kind != resp.Verbatim || v.Null:
		return refusal.ErrUnfit
	}
	return g.id.readInfo(string(v.Bytes))
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

func appendCommand(dst []byte, args ...string) []byte {
	dst = resp.AppendArray(dst, len(args))
	for _, a := range args {
		dst = resp.AppendBulkString(dst, a)
	}
	return dst
}

// replyReader reads whole replies from a blocking connection.
type replyReader struct {
	nc     net.Conn
	buf    []byte
	r, w   int
	dec    resp.Decoder
	value  resp.Value
	pushes bool // of RESP3: they come at any time and answer no command
}

// next returns the next reply, valid until the one after it.
func (r *replyReader) next() (*resp.Value, error) {
	for {
		n, err := r.dec.Decode(r.buf[r.r:r.w], &r.value)
		if err == nil {
			r.r += n
			if r.pushes && r.value.Kind == resp.Push {
				continue
			}
			return &r.value, nil
		}
		if err != resp.ErrIncomplete {
			return nil, err
		}
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
		if r.w == len(r.buf) {
			return nil, conn.ErrOversized
		}
		k, err := r.nc.Read(r.buf[r.w:])
		if err != nil && k == 0 {
			return nil, err
		}
		r.w += k
	}
}

// end makes sure that nothing is left, pushes aside.
func (r *replyReader) end() error {
	for r.r < r.w {
		n, err := r.dec.Decode(r.buf[r.r:r.w], &r.value)
		if err != nil || !r.pushes || r.value.Kind != resp.Push {
			return conn.ErrUnsolicited
		}
		r.r += n
	}
	return nil
}
