package conn

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/build"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
	"github.com/redlock-go/redlock/internal/wire/command"
)

// with makes a fleet's only address this one of its only peer.
func with(user, password string, database int) func(*Config) {
	return func(cfg *Config) {
		cfg.Addresses[0].login = func() (string, string) { return user, password }
		cfg.Addresses[0].Database = database
	}
}

// old makes a peer one that has never heard of HELLO.
func old(p *scripted.Server) { answers("HELLO", scripted.Unknown)(p) }

// The whole handshake, byte by byte.
func TestHandshakeIsWhatWeSay(t *testing.T) {
	written := func(first ...[]string) string {
		var b []byte
		for _, c := range append(first,
			[]string{"DELIFEQ", "redlock:probe", "x"}, []string{"DELEX", "redlock:probe", "IFEQ", "x"},
			[]string{"EVAL", command.ReleaseScript, "1", "redlock:probe", "x"}) {
			b = append(b, encode(c...)...)
		}
		return string(b)
	}
	hello := []string{"HELLO", "3"}
	tail := [][]string{
		{"CLIENT", "SETINFO", "LIB-NAME", "redlock-go"}, {"CLIENT", "SETINFO", "LIB-VER", build.Read().Word()},
		{"INFO", "server"}, {"INFO", "replication"}, {"INFO", "memory"},
	}
	named := func(name string) func(*Config) { return func(cfg *Config) { cfg.Name = name } }
	for name, test := range map[string]struct {
		set   func(*Config)
		first [][]string // and then tail
		last  []string
	}{
		"plain":             {func(*Config) {}, [][]string{hello}, nil},
		"password":          {with("", "pw", 0), [][]string{{"AUTH", "pw"}, hello}, nil},
		"default user":      {with("default", "pw", 0), [][]string{{"AUTH", "pw"}, hello}, nil},
		"default user only": {with("default", "", 0), [][]string{hello}, nil},
		"user and password": {with("me", "pw", 0), [][]string{{"AUTH", "me", "pw"}, hello}, nil},
		"user only":         {with("me", "", 0), [][]string{{"AUTH", "me", ""}, hello}, nil},
		"database":          {with("", "", 7), [][]string{hello}, []string{"SELECT", "7"}},
		"name":              {named("app"), [][]string{{"HELLO", "3", "SETNAME", "app"}, {"CLIENT", "SETNAME", "app"}}, nil},
		"no injection":      {with("me", "a\r\nb", 0), [][]string{{"AUTH", "me", "a\r\nb"}, hello}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			listener := scripted.New(t, func(p *scripted.Server) { p.ServeRaw = true })
			newTestFleet(t, true, []*scripted.Server{listener}, test.set)
			all := slices.Concat(test.first, tail)
			if test.last != nil {
				all = append(all, test.last)
			}
			w := listener.Next(t)
			w.Expect(written(all...))
			require.NoError(t, w.Close()) // perhaps at HELLO
			listener.Next(t).Expect(written(slices.DeleteFunc(all, func(words []string) bool { return words[0] == "HELLO" })...))
		})
	}
}

// A server that is slow without end is given up after DialTimeout, however many
// bytes it sends meanwhile.
func TestHandshakeIsBoundedInTime(t *testing.T) {
	p := scripted.New(t, func(p *scripted.Server) {
		p.Greeting = func(int, string) scripted.Steps { return scripted.Steps{"$60000\r\n", scripted.Drip} }
	})
	r := newTestFleet(t, true, []*scripted.Server{p}, func(cfg *Config) { cfg.DialTimeout = 50 * time.Millisecond })
	start := time.Now()
	r.AwaitFirst(nil, nil)
	assert.Less(t, time.Since(start), testkit.Patience/2)
	var err error
	testkit.Await(t, "the end of the dial", func() bool { // on a busy machine AwaitFirst is over before it
		r.do(func() { err = r.Fault(0) })
		var timeout interface{ Timeout() bool }
		return errors.As(err, &timeout) && timeout.Timeout()
	})
	assert.ErrorIs(t, err, ErrNotSent)
}
