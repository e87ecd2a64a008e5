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
		setLogin(&cfg.Addresses[0], user, password)
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
		"all of it": {func(cfg *Config) { with("me", "pw", 3)(cfg); named("app")(cfg) },
			[][]string{{"AUTH", "me", "pw"}, {"HELLO", "3", "SETNAME", "app"}, {"CLIENT", "SETNAME", "app"}}, []string{"SELECT", "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
				listener := scripted.New(t, func(p *scripted.Server) { p.ServeRaw = true })
				newTestFleet(t, portable, []*scripted.Server{listener}, test.set)
				all := slices.Concat(test.first, tail)
				if test.last != nil {
					all = append(all, test.last)
				}
				w := listener.Next(t)
				w.Expect(written(all...))
				require.NoError(t, w.Close()) // perhaps at HELLO
				listener.Next(t).Expect(written(slices.DeleteFunc(all, func(words []string) bool { return words[0] == "HELLO" })...))
			})
		})
	}
}

func onServer(server interface{ Addr() string }) func(*Config) {
	return func(cfg *Config) {
		cfg.Addresses = []Address{{Network: "tcp", Host: server.Addr()}}
		cfg.Probes = probeAll
	}
}

// A server that goes away at any point of the handshake, with and without a
// reset, is dialed again, up to the one that stays. With the race detector it is each fifth byte.
func TestHandshakeEndsAtEachByte(t *testing.T) {
	step := 1
	if testkit.Race {
		step = 5
	}
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		whole := make(chan int, 1)
		p := scripted.New(t, func(p *scripted.Server) {
			p.Greeting = func(n int, honest string) scripted.Steps {
				at := n / 2 * step
				if at >= len(honest) {
					whole <- n
					return scripted.Steps{honest}
				}
				end := scripted.HangUp
				if n%2 == 1 {
					end = scripted.CutOff
				}
				return scripted.Steps{honest[:at], end}
			}
		})
		r := newTestFleet(t, portable, []*scripted.Server{p}, with("me", marked, 1))
		r.up()
		assert.Equal(t, int64(<-whole+1), p.Dialled.Load())
		r.works()
	})
}

// A server that is slow without end is given up after DialTimeout, however many
// bytes it sends meanwhile.
func TestHandshakeIsBoundedInTime(t *testing.T) {
	for name, greeting := range map[string]func(int, string) scripted.Steps{
		"silent": func(int, string) scripted.Steps { return scripted.Steps{scripted.Mute} },
		"half way": func(_ int, honest string) scripted.Steps {
			return scripted.Steps{honest[:len(honest)/2], scripted.Mute}
		},
		"slow loris": func(int, string) scripted.Steps { return scripted.Steps{"$60000\r\n", scripted.Drip} },
	} {
		t.Run(name, func(t *testing.T) {
			testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
				p := scripted.New(t, func(p *scripted.Server) { p.Greeting = greeting })
				r := newTestFleet(t, portable, []*scripted.Server{p}, func(cfg *Config) { cfg.DialTimeout = 50 * time.Millisecond })
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
			})
		})
	}
}

func TestCloseDoesNotWaitForAHandshake(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		p := scripted.New(t, func(p *scripted.Server) {
			p.Greeting = func(int, string) scripted.Steps { return scripted.Steps{scripted.Mute} }
		})
		r := newTestFleet(t, portable, []*scripted.Server{p}, func(cfg *Config) { cfg.DialTimeout = time.Hour })
		testkit.Await(t, "for the dial", func() bool { return p.Dialled.Load() > 0 })
		r.do(r.Close)
		testkit.Within(t, testkit.Patience, "Drain", r.Drain)
		testkit.Within(t, testkit.Patience, "Settle", func() { r.AwaitFirst(nil, nil) })
		r.do(func() { assert.ErrorIs(t, r.Fault(0), ErrClosed) })
	})
}
