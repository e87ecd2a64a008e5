package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/redlock-go/redlock/internal/refusal"
	"github.com/redlock-go/redlock/resp"
	"github.com/valyala/bytebufferpool"
)

// What CLIENT LIST shows of us, where the server knows it.
const (
	libraryName    = "redlock-go"
	libraryVersion = "0.1.0"
)

// greeting is one command of the handshake, and what makes its reply good.
type greeting struct {
	args  []string
	check func(reply *resp.Value) error
}

// greeter is one handshake: what we have to say, and what we have heard.
type greeter struct {
	cfg            *Config
	database       int
	hello          bool // speak RESP3
	user, password string
	id             identity
}

// secret says whether the server is sent what it must not be made to repeat.
func (g *greeter) secret() bool { return g.user != "" || g.password != "" }

// greet makes a fresh connection ours: who we are, which server this is and
// what it understands, which database, and the scripts. All of it is written at
// once and then read, reply by reply. Nothing may be left over: bytes behind the
// last reply are an answer to nothing.
func (d *dialer) greet(ctx context.Context, nc net.Conn) (identity, error) {
	if tc, ok := nc.(*tls.Conn); ok {
		if err := tc.HandshakeContext(ctx); err != nil {
			return identity{}, fmt.Errorf("tls: %w", err)
		}
	}
	g := greeter{cfg: &d.fleet.cfg, database: d.addr.Database, hello: !d.old}
	var err error
	if g.user, g.password, err = d.credentials(ctx); err != nil {
		return identity{}, fmt.Errorf("credentials: %w", err)
	}
	greetings := g.greetings()
	out := bytebufferpool.Get()
	defer bytebufferpool.Put(out)
	for _, gr := range greetings {
		out.B = appendCommand(out.B, gr.args...)
	}
	_, err = nc.Write(out.B)
	clear(out.B) // a password may be in it, and the pool is the whole process's
	if err != nil {
		return identity{}, err
	}
	r := replyReader{nc: nc, buf: make([]byte, readBuffer), pushes: g.hello}
	for _, gr := range greetings {
		reply, err := r.next()
		if err != nil {
			return identity{}, err
		}
		if err := gr.check(reply); err != nil {
			if g.secret() {
				err = refusal.Redact(err)
			}
			return identity{}, err
		}
	}
	return g.id, r.end()
}

// greetings is all that we say. A server that must not be a node shows that
// before it can refuse anything else.
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
	return append(gs, g.probes()...)
}

// probes are the owner's commands. The answer to the last tells the form.
func (g *greeter) probes() (gs []greeting) {
	if g.cfg.Probes == nil {
		return nil
	}
	p := g.cfg.Probes()
	for i := range p.Len() {
		gs = append(gs, greeting{p.Command(i), func(v *resp.Value) error {
			err := p.Answer(i, v)
			g.id.form = Form(p.Form())
			return err
		}})
	}
	return gs
}

// bestEffort lets a server refuse. Where we speak before it has let us in, the
// answer may also be that it does not.
func bestEffort(v *resp.Value) error {
	if v.IsError() {
		return refusal.Fatality(v.Bytes)
	}
	return nil
}

// checkInfo takes in a section of INFO. It may be forbidden, or go by another
// name: such a server remains unknown, and that is all.
func (g *greeter) checkInfo(v *resp.Value) error {
	switch {
	case v.IsError():
		fatal, err := refusal.Read(v.Bytes)
		if code := string(v.Code()); !fatal && (code == "NOPERM" || code == "ERR") {
			return nil
		}
		return err // LOADING and the like: not a node to ask for locks
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
	_, err := refusal.Read(v.Bytes)
	if errors.Is(err, ErrForbidden) {
		return refusal.Lacks("select")
	}
	return err
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
	pushes bool // of RESP3: they come at any time and answer nothing
}

// next returns the next reply, which is valid until the one after it.
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
			return nil, ErrOversized
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
			return ErrUnsolicited
		}
		r.r += n
	}
	return nil
}
