package conn

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/scripted"
)

// with makes a fleet's only address this one of its only peer.
func with(user, password string, database int) func(*Config) {
	return func(cfg *Config) {
		cfg.Addresses[0].login = newLogin(user, password)
		cfg.Addresses[0].Database = database
	}
}

// old makes a peer one that has never heard of HELLO.
func old(p *scripted.Server) { answers("HELLO", scripted.Unknown)(p) }

// The whole of what is said, byte by byte.
func TestHandshakeIsWhatWeSay(t *testing.T) {
	said := func(first ...[]string) string {
		var b []byte
		for _, c := range append(first,
			[]string{"DELIFEQ", "redlock:probe", "x"}, []string{"DELEX", "redlock:probe", "IFEQ", "x"},
			[]string{"SET", "redlock:probe", "x", "IFEQ", "x", "PX", "1000"}, []string{"SCRIPT", "LOAD", testScript.Text}) {
			b = append(b, command(c...)...)
		}
		return string(b)
	}
	with3 := func(hello ...string) [][]string { return [][]string{append([]string{"HELLO", "3"}, hello...)} }
	tail := [][]string{
		{"CLIENT", "SETINFO", "LIB-NAME", "redlock-go"}, {"CLIENT", "SETINFO", "LIB-VER", libraryVersion},
		{"INFO", "server"}, {"INFO", "replication"}, {"INFO", "memory"},
	}
	join := func(parts ...[][]string) string { return said(slices.Concat(parts...)...) }
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
		"a name with spaces": {named("my app"), join(with3(), tail), join(tail)},
		"a name with breaks": {named("a\r\nb"), join(with3(), tail), join(tail)},
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
		cfg.Addresses = []Address{{Network: "tcp", Host: server.Addr()}}
		cfg.Scripts = LockScripts()
	}
}

// badHandshakes are those that must not make a node.
var badHandshakes = map[string]struct {
	set   func(*scripted.Server)
	greet func(honest string) scripted.Steps
	want  error
}{
	"hello refused":         {set: answers("HELLO", "-WRONGPASS "+marked+"\r\n"), want: ErrAuth},
	"hello refused in bulk": {set: answers("HELLO", "!16\r\nWRONGPASS "+marked+"\r\n"), want: ErrAuth},
	"hello wants auth":      {set: answers("HELLO", "-NOAUTH "+marked+"\r\n"), want: ErrAuth},
	"hello echoed":          {set: answers("HELLO", "-"+marked+" "+marked+"\r\n")},
	"hello is OK":           {set: answers("HELLO", "+OK\r\n"), want: errUnfit},
	"hello is null":         {set: answers("HELLO", "*-1\r\n"), want: errUnfit},
	"hello is a password":   {set: answers("HELLO", "+"+marked+"\r\n"), want: errUnfit},
	"hello is loading":      {set: answers("HELLO", "-LOADING "+marked+"\r\n")},
	"crowded":               {set: answers("HELLO", "-ERR max number of clients reached\r\n"), want: errCrowded},
	"protected":             {set: answers("HELLO", "-DENIED Redis is running in protected mode\r\n"), want: errProtected},
	"auth refused":          {set: olden("AUTH", "-WRONGPASS "+marked+"\r\n"), want: ErrAuth},
	"auth echoed":           {set: olden("AUTH", "-ERR wrong number of arguments: 'AUTH' 'me' '"+marked+"'\r\n"), want: ErrAuth},
	"auth refused in bulk":  {set: olden("AUTH", "!6\r\n"+marked+"\r\n"), want: ErrAuth},
	"auth not OK":           {set: olden("AUTH", "$-1\r\n"), want: ErrAuth},
	"auth answers password": {set: olden("AUTH", "+"+marked+"\r\n"), want: ErrAuth},
	"crowded of old":        {set: olden("AUTH", "-ERR max number of clients reached\r\n"), want: errCrowded},
	"protected of old":      {set: olden("AUTH", "-DENIED Redis is running in protected mode\r\n"), want: errProtected},
	"client turned away":    {set: answers("CLIENT", "-DENIED "+marked+"\r\n"), want: errProtected},
	"select refused":        {set: answers("SELECT", "-ERR "+marked+"\r\n")},
	"select forbidden":      {set: answers("SELECT", "-NOPERM no permissions to run the '"+marked+"' command\r\n"), want: ErrForbidden},
	"select not OK":         {set: answers("SELECT", ":1\r\n"), want: errUnfit},
	"info is loading":       {set: answers("INFO", "-LOADING "+marked+"\r\n")},
	"info wants auth":       {set: answers("INFO", "-"+marked+"\r\n")},
	"info is OK":            {set: answers("INFO", "+OK\r\n"), want: errUnfit},
	"info is null":          {set: answers("INFO", "_\r\n"), want: errUnfit},
	"probe is OK":           {set: answers("DELIFEQ", "+OK\r\n"), want: errUnfit},
	"probe is null":         {set: answers("DELEX", "_\r\n"), want: errUnfit},
	"set is a number":       {set: answers("SET", ":0\r\n"), want: errUnfit},
	"probe is redirected":   {set: answers("SET", "-MOVED 1 "+marked+":1\r\n"), want: ErrCluster},
	"probe is read only":    {set: answers("SET", "-READONLY "+marked+"\r\n"), want: ErrNotMaster},
	"script refused":        {set: answers("SCRIPT", "-ERR "+marked+"\r\n")},
	"script forbidden":      {set: answers("SCRIPT", "-NOPERM no permissions to run the '"+marked+"' command\r\n"), want: ErrForbidden},
	"digest is another":     {set: answers("SCRIPT", "$6\r\n"+marked+"\r\n")},
	"digest is a number":    {set: answers("SCRIPT", ":1\r\n")},
	"digest is null":        {set: answers("SCRIPT", "$-1\r\n")},
	"no RESP":               {set: answers("HELLO", "HTTP/1.1 400 "+marked+"\r\n\r\n")},
	"huge bulk":             {set: answers("INFO", "$1000000\r\n")},
	"huge INFO":             {set: answers("INFO", "$30000\r\n"+strings.Repeat("x", 30000)+"\r\n"), want: ErrOversized},
	"endless line":          {set: answers("INFO", "+"+strings.Repeat(marked, 3000))},
	"push in RESP2":         {set: olden("INFO memory", ">2\r\n+"+marked+"\r\n:1\r\n"+scripted.InfoOf("")), want: errUnfit},
	"half a push behind":    {greet: func(honest string) scripted.Steps { return scripted.Steps{honest + ">2\r\n:1\r\n"} }, want: ErrUnsolicited},
	"one byte too many":     {greet: func(honest string) scripted.Steps { return scripted.Steps{honest + "+"} }, want: ErrUnsolicited},
	"one reply too many":    {greet: func(honest string) scripted.Steps { return scripted.Steps{honest + "+OK\r\n"} }, want: ErrUnsolicited},
	"one reply before":      {greet: func(honest string) scripted.Steps { return scripted.Steps{"+OK\r\n" + honest} }, want: errUnfit},
	"one reply missing": {greet: func(honest string) scripted.Steps {
		return scripted.Steps{strings.Replace(honest, "+OK\r\n", "", 1), scripted.HangUp}
	}},
	"our own words": {greet: func(string) scripted.Steps {
		return scripted.Steps{string(command("AUTH", "me", marked)), scripted.HangUp}
	}},
	"closed at once": {greet: func(string) scripted.Steps { return scripted.Steps{scripted.HangUp} }},
	"reset at once":  {greet: func(string) scripted.Steps { return scripted.Steps{scripted.CutOff} }},
}

func answers(name, answer string) func(*scripted.Server) {
	return func(p *scripted.Server) {
		if p.Answers == nil {
			p.Answers = map[string]string{}
		}
		p.Answers[name] = answer
	}
}

// olden is answers from a server without HELLO.
func olden(name, answer string) func(*scripted.Server) {
	return func(p *scripted.Server) {
		old(p)
		answers(name, answer)(p)
	}
}

func TestHandshakeRefuses(t *testing.T) {
	for name, test := range badHandshakes {
		t.Run(name, func(t *testing.T) {
			testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
				bad := scripted.New(t, func(p *scripted.Server) {
					if test.set != nil {
						test.set(p)
					}
					p.Greeting = func(n int, honest string) scripted.Steps {
						if test.greet != nil {
							return append(test.greet(honest), scripted.Mute)
						}
						return scripted.Steps{honest, scripted.Mute}
					}
				})
				r := newTestFleet(t, portable, []*scripted.Server{bad, scripted.New(t)}, with("me", marked, 5))
				r.Settle()
				r.do(func() {
					err := r.Fault(0)
					require.Error(t, err)
					assert.ErrorIs(t, err, ErrNotSent)
					assert.NotContains(t, err.Error(), marked)
					assert.Contains(t, err.Error(), bad.Addr)
					if test.want != nil {
						assert.ErrorIs(t, err, test.want)
					}
					assert.NoError(t, r.Fault(1), "others are not affected")
				})
				testkit.Await(t, "for the next dial", func() bool { return bad.Dialled.Load() > 2 })
			})
		})
	}
}

// Without credentials there is nothing to hide, and the words of the server
// are what helps.
func TestHandshakeShowsARefusal(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		bad := scripted.New(t, answers("INFO", "-LOADING Redis is loading the dataset in memory\r\n"))
		r := newTestFleet(t, portable, []*scripted.Server{bad})
		r.Settle()
		r.do(func() { assert.ErrorContains(t, r.Fault(0), "LOADING Redis is loading") })
	})
}

// A server that goes away at any point of the handshake, with and without a
// reset, is dialled again, up to the one that stays.
func TestHandshakeEndsAtEachByte(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		whole := make(chan int, 1)
		p := scripted.New(t, func(p *scripted.Server) {
			p.Greeting = func(n int, honest string) scripted.Steps {
				if n/2 >= len(honest) {
					whole <- n
					return scripted.Steps{honest}
				}
				end := scripted.HangUp
				if n%2 == 1 {
					end = scripted.CutOff
				}
				return scripted.Steps{honest[:n/2], end}
			}
		})
		r := newTestFleet(t, portable, []*scripted.Server{p}, with("me", marked, 1))
		r.up()
		assert.Equal(t, int64(<-whole+1), p.Dialled.Load())
		r.works()
	})
}

func TestHandshakeInSmallPieces(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		p := scripted.New(t, func(p *scripted.Server) {
			p.Greeting = func(_ int, honest string) (s scripted.Steps) {
				for i := range honest {
					s = append(s, honest[i:i+1])
				}
				return s
			}
		})
		r := newTestFleet(t, portable, []*scripted.Server{p})
		r.up()
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
				r.Settle()
				assert.Less(t, time.Since(start), testkit.Patience/2)
				r.do(func() {
					err := r.Fault(0)
					assert.ErrorIs(t, err, ErrNotSent)
					var timeout interface{ Timeout() bool }
					if assert.ErrorAs(t, err, &timeout, err) {
						assert.True(t, timeout.Timeout())
					}
				})
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
		testkit.Within(t, testkit.Patience, "Settle", r.Settle)
		r.do(func() { assert.ErrorIs(t, r.Fault(0), ErrClosed) })
	})
}

func TestTheSameServerTwiceIsRefused(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		ps := scripted.NewN(t, 3)
		ps[2].RunID = ps[0].RunID
		r := newTestFleet(t, portable, ps)
		r.Settle()
		loser, winner := 2, 0
		r.do(func() {
			if r.Up(2) {
				loser, winner = 0, 2
			}
			assert.True(t, r.Up(1))
			assert.True(t, r.Up(winner))
			err := r.Fault(loser)
			require.ErrorIs(t, err, ErrSameServer)
			assert.ErrorIs(t, err, ErrNotSent)
			assert.Contains(t, err.Error(), ps[winner].Addr)
		})
		testkit.Await(t, "for it to be refused again", func() bool { return ps[loser].Dialled.Load() > 3 })
		r.do(func() { assert.False(t, r.Up(loser)) })

		// Only one of them can be up, but it may be either.
		ps[winner].Stop()
		r.until("for the other to come up", func() bool { return r.Up(loser) && !r.Up(winner) })
	})
}

func TestServersWithoutARunIDAreNotCompared(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := newTestFleet(t, portable, scripted.NewN(t, 3, answers("INFO", "-NOPERM no\r\n")))
		r.up()
		r.works()
	})
}
