package conn

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
	"github.com/redlock-go/redlock/internal/wire/refusal"
)

// badHandshakes are those that must not make a node.
var badHandshakes = map[string]struct {
	set   func(*scripted.Server)
	greet func(honest string) scripted.Steps
	want  error
}{
	"hello refused":         {set: answers("HELLO", "-WRONGPASS "+marked+"\r\n"), want: ErrAuth},
	"hello refused in bulk": {set: answers("HELLO", "!16\r\nWRONGPASS "+marked+"\r\n"), want: ErrAuth},
	"auth wants auth":       {set: olden("AUTH", "-NOAUTH "+marked+"\r\n"), want: ErrAuth},
	"hello is OK":           {set: answers("HELLO", "+OK\r\n"), want: refusal.ErrUnfit},
	"hello is null":         {set: answers("HELLO", "*-1\r\n"), want: refusal.ErrUnfit},
	"hello is a password":   {set: answers("HELLO", "+"+marked+"\r\n"), want: refusal.ErrUnfit},
	"hello is loading":      {set: answers("HELLO", "-LOADING "+marked+"\r\n")},
	"crowded":               {set: answers("HELLO", "-ERR max number of clients reached\r\n"), want: refusal.ErrCrowded},
	"protected":             {set: answers("HELLO", "-DENIED Redis is running in protected mode\r\n"), want: refusal.ErrProtected},
	"auth refused":          {set: olden("AUTH", "-WRONGPASS "+marked+"\r\n"), want: ErrAuth},
	"auth echoed":           {set: olden("AUTH", "-ERR wrong number of arguments: 'AUTH' 'me' '"+marked+"'\r\n"), want: ErrAuth},
	"auth refused in bulk":  {set: olden("AUTH", "!6\r\n"+marked+"\r\n"), want: ErrAuth},
	"auth not OK":           {set: olden("AUTH", "$-1\r\n"), want: ErrAuth},
	"auth answers password": {set: olden("AUTH", "+"+marked+"\r\n"), want: ErrAuth},
	"crowded of old":        {set: olden("AUTH", "-ERR max number of clients reached\r\n"), want: refusal.ErrCrowded},
	"protected of old":      {set: olden("AUTH", "-DENIED Redis is running in protected mode\r\n"), want: refusal.ErrProtected},
	"client turned away":    {set: answers("CLIENT", "-DENIED "+marked+"\r\n"), want: refusal.ErrProtected},
	"select refused":        {set: answers("SELECT", "-ERR "+marked+"\r\n"), want: ErrRefused},
	"select forbidden":      {set: answers("SELECT", "-NOPERM no permissions to run the '"+marked+"' command\r\n"), want: ErrForbidden},
	"select not OK":         {set: answers("SELECT", ":1\r\n"), want: refusal.ErrUnfit},
	"info is loading":       {set: answers("INFO", "-LOADING "+marked+"\r\n")},
	"info is OK":            {set: answers("INFO", "+OK\r\n"), want: refusal.ErrUnfit},
	"info is null":          {set: answers("INFO", "_\r\n"), want: refusal.ErrUnfit},
	"probe is OK":           {set: answers("DELIFEQ", "+OK\r\n"), want: refusal.ErrUnfit},
	"probe is null":         {set: answers("DELEX", "_\r\n"), want: refusal.ErrUnfit},
	"probe is redirected":   {set: answers("DELEX", "-MOVED 1 "+marked+":1\r\n"), want: ErrCluster},
	"probe is read only":    {set: answers("DELEX", "-READONLY "+marked+"\r\n"), want: ErrNotMaster},
	"script refused":        {set: answers("EVAL", "-ERR "+marked+"\r\n"), want: ErrRefused},
	"no RESP":               {set: answers("AUTH", "HTTP/1.1 400 "+marked+"\r\n\r\n"), want: ErrNotRESP},
	"huge bulk":             {set: answers("INFO", "$1000000\r\n")},
	"huge INFO":             {set: answers("INFO", "$30000\r\n"+strings.Repeat("x", 30000)+"\r\n"), want: ErrOversized},
	"endless line":          {set: answers("INFO", "+"+strings.Repeat(marked, 3000))},
	"push in RESP2":         {set: olden("INFO memory", ">2\r\n+"+marked+"\r\n:1\r\n"+scripted.InfoOf("")), want: refusal.ErrUnfit},
	"half a push behind":    {greet: func(honest string) scripted.Steps { return scripted.Steps{honest + ">2\r\n:1\r\n"} }, want: ErrUnsolicited},
	"one byte too many":     {greet: func(honest string) scripted.Steps { return scripted.Steps{honest + "+"} }, want: ErrUnsolicited},
	"one reply too many":    {greet: func(honest string) scripted.Steps { return scripted.Steps{honest + "+OK\r\n"} }, want: ErrUnsolicited},
	"one reply before":      {greet: func(honest string) scripted.Steps { return scripted.Steps{"+OK\r\n" + honest} }, want: refusal.ErrUnfit},
	"one reply missing": {greet: func(honest string) scripted.Steps {
		return scripted.Steps{strings.Replace(honest, "+OK\r\n", "", 1), scripted.HangUp}
	}},
	"half a reply": {greet: func(honest string) scripted.Steps {
		return scripted.Steps{honest[:len(honest)-3], scripted.HangUp}
	}},
	"our own words": {greet: func(string) scripted.Steps {
		return scripted.Steps{string(encode("AUTH", "me", marked)), scripted.HangUp}
	}},
	"crowded before it hears anything": {greet: func(string) scripted.Steps {
		return scripted.Steps{"-ERR max number of clients reached\r\n", scripted.HangUp}
	}, want: refusal.ErrCrowded},
	// A server that must not be a node, at each place where it shows.
	"replica by HELLO":  {set: answers("HELLO", scripted.WelcomeOf("standalone", "replica")), want: ErrNotMaster},
	"replica by INFO":   {set: olden("INFO replication", scripted.InfoOf("role:slave\r\n")), want: ErrNotMaster},
	"cluster by INFO":   {set: olden("INFO server", scripted.InfoOf("redis_mode:cluster\r\n")), want: ErrCluster},
	"cluster of Valkey": {set: olden("INFO server", scripted.InfoOf("server_mode:cluster\r\n")), want: ErrCluster},
	"sentinel by INFO":  {set: olden("INFO server", scripted.InfoOf("redis_mode:sentinel\r\n")), want: ErrSentinel},
	"stale replica":     {set: olden("INFO", "-MASTERDOWN Link with MASTER is down\r\n"), want: ErrNotMaster},
	"closed at once":    {greet: func(string) scripted.Steps { return scripted.Steps{scripted.HangUp} }},
	"reset at once":     {greet: func(string) scripted.Steps { return scripted.Steps{scripted.CutOff} }},
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
			r := newTestFleet(t, true, []*scripted.Server{bad, scripted.New(t)}, with("me", marked, 5))
			r.AwaitFirst(nil, nil)
			r.do(func() {
				err := r.Fault(0)
				require.Error(t, err)
				assert.ErrorIs(t, err, ErrNotSent)
				assert.NotContains(t, err.Error(), marked)
				assert.Contains(t, err.Error(), bad.Addr)
				if test.want != nil {
					assert.ErrorIs(t, err, test.want)
				}
				if name == "closed at once" {
					assert.ErrorContains(t, err, "a published port does without a server behind it, or one that wants TLS (rediss://): ")
				}
				assert.NoError(t, r.Fault(1), "others are not affected")
			})
			testkit.Await(t, "for the next dial", func() bool { return bad.Dialled.Load() > 2 })
		})
	}
}

// TestUnknownQuestions: a server that does not know a question of the handshake is a node,
// in all words in which it may say so, also in ours. What it does not show of
// itself is not known.
func TestUnknownQuestions(t *testing.T) {
	for question, silent := range map[string]bool{
		"HELLO": false, "CLIENT": false, "INFO": true, "INFO server": true, "INFO memory": false,
		"DELIFEQ": false, "DELEX": false,
	} {
		for _, words := range []string{"-section (server) is not supported\r\n", "-" + marked + "\r\n", "-ERR " + marked + "\r\n", "-NOPERM no\r\n",
			"-NOPROTO unsupported protocol version\r\n", "!11\r\nERR unknown\r\n"} {
			testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
				var log testkit.LogSink
				p := scripted.New(t, answers(question, words))
				r := newTestFleet(t, portable, []*scripted.Server{p}, with("me", marked, 0), func(cfg *Config) {
					cfg.Logger = log.Logger(slog.LevelWarn)
				})
				for connects := range 2 {
					r.up()
					r.works()
					assert.EqualValues(t, connects+1, p.Dialled.Load())
					r.dials.Wait() // a warning comes after the connection
					r.do(func() {
						s := r.Node(0).Server
						assert.Equal(t, silent, s.RunID == "", "%s %s", question, words)
						assert.NotContains(t, fmt.Sprint(s.Err), marked)
					})
					r.wires[0].Cut()
					r.lose(0)
				}
				assert.NotContains(t, log.String(), marked)
			})
		}
	}
}
