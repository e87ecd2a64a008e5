package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/resp"
	"github.com/valyala/bytebufferpool"
)

// ErrAuth is a refusal of our credentials. What the server said is not shown:
// servers are known to repeat what they were sent.
var ErrAuth = errors.New("server refused the credentials")

// greeting is one command of the handshake, and what makes its reply good.
type greeting struct {
	command []byte
	check   func(reply string, err error) error
}

// handshake makes a fresh connection ours: who we are, which database, which
// server this is, and the scripts. All of it is written at once and then read,
// reply by reply. Nothing may be left over: bytes behind the last reply are an
// answer to nothing.
//
// It returns the server's run_id, which every process start makes anew, or ""
// where INFO is not allowed or does not tell.
func (f *Fleet) handshake(ctx context.Context, nc net.Conn, addr Address) (runID string, err error) {
	if tc, ok := nc.(*tls.Conn); ok {
		if err := tc.HandshakeContext(ctx); err != nil {
			return "", fmt.Errorf("tls: %w", err)
		}
	}
	greetings := f.greetings(addr, &runID)
	out := bytebufferpool.Get()
	defer bytebufferpool.Put(out)
	for _, g := range greetings {
		out.B = append(out.B, g.command...)
	}
	_, err = nc.Write(out.B)
	clear(out.B) // a password may be in it, and the pool is the whole process's
	if err != nil {
		return "", err
	}
	r := replyReader{nc: nc, buf: make([]byte, readBuffer)}
	for _, g := range greetings {
		reply, err := r.next()
		var refused *resp.ServerError
		if err != nil && !errors.As(err, &refused) {
			return "", err
		}
		if err := g.check(reply, err); err != nil {
			return "", muffle(err, addr)
		}
	}
	if r.w > r.r {
		return "", ErrUnsolicited
	}
	return runID, nil
}

func (f *Fleet) greetings(addr Address, runID *string) []greeting {
	var gs []greeting
	if user, password := addr.credentials(); user != "" || password != "" {
		args := []string{"AUTH", password}
		if user != "" {
			args = []string{"AUTH", user, password}
		}
		gs = append(gs, greeting{command(args...), func(reply string, err error) error {
			if err != nil || reply != "OK" {
				return ErrAuth
			}
			return nil
		}})
	}
	if addr.Database != 0 {
		gs = append(gs, greeting{command("SELECT", strconv.Itoa(addr.Database)), mustSucceed})
	}
	if f.cfg.Name != "" {
		gs = append(gs, greeting{command("CLIENT", "SETNAME", f.cfg.Name), mayFail})
	}
	gs = append(gs, greeting{command("INFO", "server"), func(reply string, err error) error {
		var refused *resp.ServerError
		if errors.As(err, &refused) && refused.Code != "NOPERM" {
			return err // LOADING, NOAUTH and the like: not a node to ask for locks
		}
		*runID = infoField(reply, "run_id")
		return nil
	}})
	for _, s := range f.cfg.Scripts {
		gs = append(gs, greeting{command("SCRIPT", "LOAD", s.Text), func(reply string, err error) error {
			if err == nil && reply != s.SHA1 {
				err = errors.New("server names a script differently")
			}
			return err
		}})
	}
	return gs
}

func mustSucceed(reply string, err error) error {
	if err == nil && reply != "OK" {
		err = errors.New("server answers something else than OK")
	}
	return err
}

func mayFail(string, error) error { return nil }

// muffle keeps the server's words out of an error where it was sent a password,
// which it may repeat in answer to anything; what is left is a code we know.
func muffle(err error, addr Address) error {
	var refused *resp.ServerError
	if addr.login == nil || !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case "DENIED", "ERR", "LOADING", "MASTERDOWN", "NOAUTH", "NOPERM":
		return fmt.Errorf("server refuses the handshake: %s", refused.Code)
	}
	return errors.New("server refuses the handshake")
}

// infoField finds a field in an answer to INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func command(args ...string) []byte {
	b := resp.AppendArray(nil, len(args))
	for _, a := range args {
		b = resp.AppendBulkString(b, a)
	}
	return b
}

// replyReader reads whole replies from a blocking connection.
type replyReader struct {
	nc   net.Conn
	buf  []byte
	r, w int
	dec  resp.Decoder
}

// next returns the text of a scalar reply, or "" for any other; an error reply
// is a *resp.ServerError.
func (r *replyReader) next() (string, error) {
	var v resp.Value
	for {
		n, err := r.dec.Decode(r.buf[r.r:r.w], &v)
		switch {
		case err == nil:
			r.r += n
			if v.Kind == resp.Error || v.Kind == resp.BulkError {
				return "", resp.NewServerError(v.Bytes)
			}
			return string(v.Bytes), nil
		case err != resp.ErrIncomplete:
			return "", err
		}
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
		if r.w == len(r.buf) {
			return "", ErrOversized
		}
		k, err := r.nc.Read(r.buf[r.w:])
		if err != nil && k == 0 {
			return "", err
		}
		r.w += k
	}
}
