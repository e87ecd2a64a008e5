package fleet

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/redlock-go/redlock/conn"
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
	with3 := func(hello ...string) [][]string { return [][]string{append([]string{"HELLO", "3"}, hello...)} }
	tail := [][]string{
		{"CLIENT", "SETINFO", "LIB-NAME", "redlock-go"}, {"CLIENT", "SETINFO", "LIB-VER", libraryVersion},
		{"INFO", "server"}, {"INFO", "replication"}, {"INFO", "memory"},
	}
	join := func(parts ...[][]string) string { return written(slices.Concat(parts...)...) }
	named := func(name string) func(*Config) { return func(cfg *Config) { cfg.Name = name } }
	auth := func(args ...string) [][]string { return [][]string{append([]string{"AUTH"}, args...)} }
	for name, test := range map[string]struct {
		set         func(*Config)
		want, want2 string
	}{
		"plain": {func(*Config) {}, join(with3(), tail), join(tail)},
		"password": {with("", "pw", 0),
			join(with3("AUTH", "default", "pw"), auth("pw"), tail), join(auth("pw"), tail)},
		"default user": {with("default", "pw", 0),
			join(with3("AUTH", "default", "pw"), auth("pw"), tail), join(auth("pw"), tail)},
		"default user only": {with("default", "", 0), join(with3(), tail), join(tail)},
		"user and password": {with("me", "pw", 0), join(with3("AUTH", "me", "pw"), tail), join(auth("me", "pw"), tail)},
		"user only":         {with("me", "", 0), join(with3("AUTH", "me", ""), tail), join(auth("me", ""), tail)},
		"database": {with("", "", 7),
			join(with3(), tail, [][]string{{"SELECT", "7"}}), join(tail, [][]string{{"SELECT", "7"}})},
		"name": {named("app"),
			join(with3("SETNAME", "app"), tail), join([][]string{{"CLIENT", "SETNAME", "app"}}, tail)},
		"no injection": {with("me", "a\r\nb", 0),
			join(with3("AUTH", "me", "a\r\nb"), tail), join(auth("me", "a\r\nb"), tail)},
		"all of it": {func(cfg *Config) { with("me", "pw", 3)(cfg); named("app")(cfg) },
			join(with3("AUTH", "me", "pw", "SETNAME", "app"), tail, [][]string{{"SELECT", "3"}}),
			join(auth("me", "pw"), [][]string{{"CLIENT", "SETNAME", "app"}}, tail, [][]string{{"SELECT", "3"}})},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
				listener := scripted.New(t, func(p *scripted.Server) { p.ServeRaw = true })
				newTestFleet(t, portable, []*scripted.Server{listener}, test.set)
				w := listener.Next(t)
				w.Expect(test.want)
				w.Send(scripted.Unknown) // what else is answered is of no interest to who is refused HELLO
				_, _ = w.Rest()
				listener.Next(t).Expect(test.want2)
			})
		})
	}
}

// onServer makes a fleet's only node a server, and gives it the scripts it knows.
func onServer(server interface{ Addr() string }) func(*Config) {
	return func(cfg *Config) {
		cfg.Addresses = []conn.Address{{Network: "tcp", Host: server.Addr()}}
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
				assert.ErrorIs(t, err, conn.ErrNotSent)
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
		r.do(func() { assert.ErrorIs(t, r.Fault(0), conn.ErrClosed) })
	})
}
