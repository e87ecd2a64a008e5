package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/refusal"
	"github.com/redlock-go/redlock/resp"
)

// value decodes a reply.
func value(t *testing.T, wire string) *resp.Value {
	t.Helper()
	var d resp.Decoder
	var v resp.Value
	_, err := d.Decode([]byte(wire), &v)
	require.NoError(t, err, "%q", wire)
	return &v
}

const (
	yes     = ":1\r\n"
	no      = ":0\r\n"
	null    = "_\r\n"
	unknown = "-ERR unknown command 'x', with args beginning with: \r\n"
	syntax  = "-ERR syntax error\r\n"
	noRight = "-NOPERM User x has no permissions to run the 'this' command\r\n"
	oldKey  = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	noKey   = "-NOPERM No permissions to access a key\r\n"
)

// probe answers the probes by their first word, and those that are not named as
// Redis 7 does. It returns the first error.
func (p *Probes) probeWith(t *testing.T, answers map[string]string) (err error) {
	for i := range p.Len() {
		words := p.Command(i)
		reply, found := answers[words[0]]
		switch {
		case found:
		case words[0] == "SCRIPT" && words[2] == ReleaseScript:
			reply = "$40\r\n" + ReleaseSHA1 + "\r\n"
		case words[0] == "SCRIPT":
			reply = "$40\r\n" + ExtendSHA1 + "\r\n"
		case words[0] == "EVALSHA":
			reply = "*1\r\n:0\r\n"
		case words[0] == "SET":
			reply = syntax
		default:
			reply = unknown
		}
		if err = p.Answer(i, value(t, reply)); err != nil {
			return err
		}
	}
	return nil
}

// TestFormIsFoundByAsking, not by what a server calls itself.
func TestFormIsFoundByAsking(t *testing.T) {
	for name, test := range map[string]struct {
		delifeq, delex, set string
		want                Form
	}{
		"Redis 7":                 {unknown, unknown, syntax, Scripts},
		"Redis 8.4":               {unknown, no, null, DelEx | SetIfEq},
		"Valkey 8.1":              {unknown, unknown, null, SetIfEq},
		"Valkey 9.0":              {no, unknown, null, DelIfEq | SetIfEq},
		"Valkey 9.2":              {no, no, null, DelIfEq | SetIfEq},
		"RESP2 null":              {no, unknown, "$-1\r\n", DelIfEq | SetIfEq},
		"the key was there":       {yes, unknown, "+OK\r\n", DelIfEq | SetIfEq},
		"a negative number":       {unknown, ":-1\r\n", null, DelEx | SetIfEq},
		"no DELIFEQ":              {noRight, unknown, null, SetIfEq},
		"no DELIFEQ but DELEX":    {noRight, no, null, DelEx | SetIfEq},
		"no SET":                  {no, unknown, noRight, DelIfEq},
		"keys are out of bounds":  {noKey, unknown, noKey, DelIfEq | SetIfEq},
		"so they are in 8.4":      {unknown, noKey, noKey, DelEx | SetIfEq},
		"so they are in 7":        {unknown, unknown, oldKey, Scripts},
		"nothing but the release": {noKey, unknown, syntax, DelIfEq},
		"out of memory":           {no, unknown, "-OOM command not allowed\r\n", DelIfEq},
		"disk is full":            {"-MISCONF\r\n", "-MISCONF\r\n", "-MISCONF\r\n", Scripts},
		"busy":                    {"-BUSY\r\n", unknown, "-BUSY\r\n", Scripts},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewProbes(false, nil)
			require.NoError(t, p.probeWith(t, map[string]string{"DELIFEQ": test.delifeq, "DELEX": test.delex, "SET": test.set}))
			assert.Equal(t, test.want, Form(p.Form()))
		})
	}
	p := NewProbes(true, nil)
	require.NoError(t, p.probeWith(t, map[string]string{"DELIFEQ": no, "SET": null}))
	assert.Equal(t, Scripts, Form(p.Form()))
}

// TestScriptsThatFail: only what a node cannot do without must be loaded, and must
// be right. A call that fails for a passing reason does not keep a node away.
func TestScriptsThatFail(t *testing.T) {
	for _, test := range []struct {
		word, reply string
		want        error // on nodes that need the scripts
		native      bool  // also on those that do not
	}{
		{"SCRIPT", unknown, errAny, false},
		{"SCRIPT", "-NOPERM User x has no permissions to run the 'script|load' command\r\n", nil, false}, // it was loaded
		{"SCRIPT", "-BUSY Redis is busy\r\n", errAny, false},
		{"SCRIPT", "$3\r\nabc\r\n", errAny, true},
		{"SCRIPT", "-NOAUTH Authentication required.\r\n", refusal.ErrAuth, true},
		{"EVALSHA", noKey, nil, false},
		{"EVALSHA", "-BUSY Redis is busy running a script.\r\n", nil, false},
		{"EVALSHA", "-NOSCRIPT No matching script.\r\n", nil, false},
		{"EVALSHA", "-NOPERM User x has no permissions to run the 'evalsha' command\r\n", refusal.ErrForbidden, false},
		{"EVALSHA", "-ERR ACL failure in script: User x has no permissions to run the 'mget' command script: on @user_script:1.\r\n", refusal.ErrForbidden, false},
		{"EVALSHA", "-CLUSTERDOWN Hash slot not served\r\n", refusal.ErrCluster, true},
	} {
		check := func(err error, want error) {
			t.Helper()
			if want == errAny {
				assert.Error(t, err, test.reply)
			} else {
				assert.ErrorIs(t, err, want, test.reply)
			}
		}
		check(NewProbes(false, nil).probeWith(t, map[string]string{test.word: test.reply}), test.want)
		if !test.native {
			test.want = nil
		}
		check(NewProbes(false, nil).probeWith(t, map[string]string{test.word: test.reply, "DELIFEQ": no, "SET": null}), test.want)
	}
	// Neither loaded nor allowed to be called.
	forbidden := map[string]string{"SCRIPT": noRight, "EVALSHA": noRight}
	assert.ErrorContains(t, NewProbes(false, nil).probeWith(t, forbidden), "script|load")
	for _, kind := range []string{"DELIFEQ", "DELEX", "SET", "EVALSHA"} { // of another type than the command has
		err := NewProbes(false, nil).probeWith(t, map[string]string{kind: "+PONG\r\n"})
		if kind != "EVALSHA" { // its answer does not matter
			assert.ErrorIs(t, err, refusal.ErrUnfit, kind)
		}
	}
}

var errAny = refusal.ErrUnfit // stands for any

// TestProbesChangeNothing: all are about the key that no lock has.
func TestProbesChangeNothing(t *testing.T) {
	p := NewProbes(false, nil)
	for i := range p.Len() {
		if words := p.Command(i); words[0] != "SCRIPT" {
			assert.Contains(t, strings.Join(words, " "), probeKey+" ")
		}
	}
}
