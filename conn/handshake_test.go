package conn

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/script"
)

// with makes a rig's only address this one of its only peer.
func with(user, password string, database int) func(*Config) {
	return func(cfg *Config) {
		cfg.Addresses[0].login = newLogin(user, password)
		cfg.Addresses[0].Database = database
	}
}

// The whole of what is said, byte by byte.
func TestHandshakeIsWhatWeSay(t *testing.T) {
	hello := func(commands ...[]string) string {
		var b []byte
		for _, c := range append(commands, []string{"INFO", "server"}, []string{"SCRIPT", "LOAD", testScript.Text}) {
			b = append(b, command(c...)...)
		}
		return string(b)
	}
	for name, test := range map[string]struct {
		set  func(*Config)
		want string
	}{
		"plain":                {func(*Config) {}, hello()},
		"password":             {with("", "pw", 0), hello([]string{"AUTH", "pw"})},
		"user and password":    {with("me", "pw", 0), hello([]string{"AUTH", "me", "pw"})},
		"user only":            {with("me", "", 0), hello([]string{"AUTH", "me", ""})},
		"database":             {with("", "", 7), hello([]string{"SELECT", "7"})},
		"name":                 {func(cfg *Config) { cfg.Name = "app" }, hello([]string{"CLIENT", "SETNAME", "app"})},
		"no injection":         {with("", "a\r\nb", 0), hello([]string{"AUTH", "a\r\nb"})},
		"credentials come 1st": {with("me", "pw", 3), hello([]string{"AUTH", "me", "pw"}, []string{"SELECT", "3"})},
	} {
		t.Run(name, func(t *testing.T) {
			eachPath(t, func(t *testing.T, portable bool) {
				listener := newPeer(t, func(p *peer) { p.serveRaw = true })
				newRig(t, portable, []*peer{listener}, test.set)
				listener.next(t).expect(test.want)
			})
		})
	}
}

func TestHandshakeWithAServer(t *testing.T) {
	for name, test := range map[string]struct {
		options fakeredis.Options
		set     func(*Config)
		bad     error
	}{
		"open":           {fakeredis.Options{}, func(*Config) {}, nil},
		"database":       {fakeredis.Options{}, with("", "", 3), nil},
		"no database":    {fakeredis.Options{}, with("", "", 99), errAny},
		"name":           {fakeredis.Options{}, func(cfg *Config) { cfg.Name = "app" }, nil},
		"refused name":   {fakeredis.Options{Deny: []string{"CLIENT"}}, func(cfg *Config) { cfg.Name = "app" }, nil},
		"no INFO":        {fakeredis.Options{Deny: []string{"INFO"}}, func(*Config) {}, nil},
		"no SCRIPT":      {fakeredis.Options{Deny: []string{"SCRIPT"}}, func(*Config) {}, errAny},
		"password":       {fakeredis.Options{Password: marked}, with("", marked, 0), nil},
		"wrong password": {fakeredis.Options{Password: "other"}, with("", marked, 0), ErrAuth},
		"no password":    {fakeredis.Options{Password: marked}, func(*Config) {}, errAny},
		"user":           {fakeredis.Options{User: "me", Password: marked}, with("me", marked, 0), nil},
		"wrong user":     {fakeredis.Options{User: "you", Password: marked}, with("me", marked, 0), ErrAuth},
		"one too much":   {fakeredis.Options{}, with("", marked, 0), ErrAuth},
	} {
		t.Run(name, func(t *testing.T) {
			eachPath(t, func(t *testing.T, portable bool) {
				server := fakeredis.StartN(t, 1, test.options)[0]
				r := newRig(t, portable, nil, func(cfg *Config) {
					cfg.Addresses = []Address{{Network: "tcp", Host: server.Addr()}}
					cfg.Scripts = []Script{{script.Release, script.ReleaseSHA1}, {script.Extend, script.ExtendSHA1}}
					test.set(cfg)
				})
				r.Settle()
				r.do(func() {
					if test.bad == nil {
						assert.NoError(t, r.Fault(0))
						return
					}
					err := r.Fault(0)
					if assert.Error(t, err); test.bad != errAny {
						assert.ErrorIs(t, err, test.bad)
					}
					assert.ErrorIs(t, err, ErrNotSent)
					assert.NotContains(t, err.Error(), marked)
				})
			})
		})
	}
}

var errAny = errors.New("any")

// refusals are handshakes that must not make a node.
var refusals = map[string]struct {
	set      func(*peer)
	greet    func(honest string) steps
	want     error
	unquoted bool // the server's words may be shown
}{
	"auth refused":          {set: answers("AUTH", "-WRONGPASS "+marked+"\r\n"), want: ErrAuth},
	"auth echoed":           {set: answers("AUTH", "-ERR wrong number of arguments: 'AUTH' 'me' '"+marked+"'\r\n"), want: ErrAuth},
	"auth refused in bulk":  {set: answers("AUTH", "!6\r\n"+marked+"\r\n"), want: ErrAuth},
	"auth not OK":           {set: answers("AUTH", "$-1\r\n"), want: ErrAuth},
	"auth answers password": {set: answers("AUTH", "+"+marked+"\r\n"), want: ErrAuth},
	"select refused":        {set: answers("SELECT", "-ERR "+marked+"\r\n")},
	"select not OK":         {set: answers("SELECT", ":1\r\n")},
	"info is loading":       {set: answers("INFO", "-LOADING "+marked+"\r\n")},
	"info wants auth":       {set: answers("INFO", "-"+marked+"\r\n")},
	"script refused":        {set: answers("SCRIPT", "-ERR "+marked+"\r\n")},
	"digest is another":     {set: answers("SCRIPT", "$6\r\n"+marked+"\r\n")},
	"digest is a number":    {set: answers("SCRIPT", ":1\r\n")},
	"digest is null":        {set: answers("SCRIPT", "$-1\r\n")},
	"no RESP":               {set: answers("AUTH", "HTTP/1.1 400 "+marked+"\r\n\r\n")},
	"huge bulk":             {set: answers("INFO", "$1000000\r\n")},
	"huge INFO":             {set: answers("INFO", "$30000\r\n"+strings.Repeat("x", 30000)+"\r\n"), want: ErrOversized},
	"endless line":          {set: answers("INFO", "+"+strings.Repeat(marked, 3000))},
	"push in between":       {set: answers("SCRIPT", ">2\r\n+"+marked+"\r\n:1\r\n"+"+OK\r\n")},
	"one byte too many":     {greet: func(honest string) steps { return steps{honest + "+"} }, want: ErrUnsolicited},
	"one reply too many":    {greet: func(honest string) steps { return steps{honest + "+OK\r\n"} }, want: ErrUnsolicited},
	"one reply before":      {greet: func(honest string) steps { return steps{"+OK\r\n" + honest} }},
	"one reply missing":     {greet: func(honest string) steps { return steps{strings.TrimPrefix(honest, "+OK\r\n"), hangUp} }},
	"our own words":         {greet: func(string) steps { return steps{string(command("AUTH", "me", marked)), hangUp} }},
	"closed at once":        {greet: func(string) steps { return steps{hangUp} }},
	"reset at once":         {greet: func(string) steps { return steps{cut} }},
}

func answers(name, answer string) func(*peer) {
	return func(p *peer) { p.answers = map[string]string{name: answer} }
}

func TestHandshakeRefuses(t *testing.T) {
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			eachPath(t, func(t *testing.T, portable bool) {
				bad := newPeer(t, func(p *peer) {
					if test.set != nil {
						test.set(p)
					}
					p.greeting = func(n int, honest string) steps {
						if test.greet != nil {
							return append(test.greet(honest), mute)
						}
						return steps{honest, mute}
					}
				})
				r := newRig(t, portable, []*peer{bad, newPeer(t)}, with("me", marked, 5))
				r.Settle()
				r.do(func() {
					err := r.Fault(0)
					require.Error(t, err)
					assert.ErrorIs(t, err, ErrNotSent)
					assert.NotContains(t, err.Error(), marked)
					assert.Contains(t, err.Error(), bad.addr)
					if test.want != nil {
						assert.ErrorIs(t, err, test.want)
					}
					assert.NoError(t, r.Fault(1), "others are not affected")
				})
				waitFor(t, "for the next dial", func() bool { return bad.dialled.Load() > 2 })
			})
		})
	}
}

// Without credentials there is nothing to hide, and the words of the server
// are what helps.
func TestHandshakeShowsARefusal(t *testing.T) {
	eachPath(t, func(t *testing.T, portable bool) {
		bad := newPeer(t, answers("INFO", "-LOADING Redis is loading the dataset in memory\r\n"))
		r := newRig(t, portable, []*peer{bad})
		r.Settle()
		r.do(func() { assert.ErrorContains(t, r.Fault(0), "LOADING Redis is loading") })
	})
}

// A server that goes away at any point of the handshake, with and without a
// reset, is dialled again, up to the one that stays.
func TestHandshakeEndsAtEachByte(t *testing.T) {
	eachPath(t, func(t *testing.T, portable bool) {
		whole := make(chan int, 1)
		p := newPeer(t, func(p *peer) {
			p.greeting = func(n int, honest string) steps {
				if n/2 >= len(honest) {
					whole <- n
					return steps{honest}
				}
				end := hangUp
				if n%2 == 1 {
					end = cut
				}
				return steps{honest[:n/2], end}
			}
		})
		r := newRig(t, portable, []*peer{p}, with("me", marked, 1))
		r.up()
		assert.Equal(t, int64(<-whole+1), p.dialled.Load())
		r.works()
	})
}

func TestHandshakeInSmallPieces(t *testing.T) {
	eachPath(t, func(t *testing.T, portable bool) {
		p := newPeer(t, func(p *peer) {
			p.greeting = func(_ int, honest string) (s steps) {
				for i := range honest {
					s = append(s, honest[i:i+1])
				}
				return s
			}
		})
		r := newRig(t, portable, []*peer{p})
		r.up()
		r.works()
	})
}

// A server that is slow without end is given up after DialTimeout, however many
// bytes it sends meanwhile.
func TestHandshakeIsBoundedInTime(t *testing.T) {
	for name, greeting := range map[string]func(int, string) steps{
		"silent":     func(int, string) steps { return steps{mute} },
		"half way":   func(_ int, honest string) steps { return steps{honest[:len(honest)/2], mute} },
		"slow loris": func(int, string) steps { return steps{"$60000\r\n", drip} },
	} {
		t.Run(name, func(t *testing.T) {
			eachPath(t, func(t *testing.T, portable bool) {
				p := newPeer(t, func(p *peer) { p.greeting = greeting })
				r := newRig(t, portable, []*peer{p}, func(cfg *Config) { cfg.DialTimeout = 50 * time.Millisecond })
				start := time.Now()
				r.Settle()
				assert.Less(t, time.Since(start), patience/2)
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
	eachPath(t, func(t *testing.T, portable bool) {
		p := newPeer(t, func(p *peer) { p.greeting = func(int, string) steps { return steps{mute} } })
		r := newRig(t, portable, []*peer{p}, func(cfg *Config) { cfg.DialTimeout = time.Hour })
		waitFor(t, "for the dial", func() bool { return p.dialled.Load() > 0 })
		r.do(r.Close)
		within(t, "Drain", r.Drain)
		within(t, "Settle", r.Settle)
		r.do(func() { assert.ErrorIs(t, r.Fault(0), ErrClosed) })
	})
}

func TestTheSameServerTwiceIsRefused(t *testing.T) {
	eachPath(t, func(t *testing.T, portable bool) {
		ps := newPeers(t, 3)
		ps[2].runID = ps[0].runID
		r := newRig(t, portable, ps)
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
			assert.Contains(t, err.Error(), ps[winner].addr)
		})
		waitFor(t, "for it to be refused again", func() bool { return ps[loser].dialled.Load() > 3 })
		r.do(func() { assert.False(t, r.Up(loser)) })

		// Only one of them can be up, but it may be either.
		ps[winner].stop()
		r.until("for the other to come up", func() bool { return r.Up(loser) && !r.Up(winner) })
	})
}

func TestServersWithoutARunIDAreNotCompared(t *testing.T) {
	eachPath(t, func(t *testing.T, portable bool) {
		r := newRig(t, portable, newPeers(t, 3, answers("INFO", "-NOPERM no\r\n")))
		r.up()
		r.works()
	})
}
