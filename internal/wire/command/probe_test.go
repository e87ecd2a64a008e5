package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/wire/refusal"
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

// probeWith answers the probes by their first word, and all others as Redis 7 does. It returns the
// form, and the first error.
func probeWith(t *testing.T, scripted bool, answers map[string]string) (form Form, err error) {
	type probe struct {
		answer func(*resp.Value) error
		words  []string
	}
	var asked []probe
	p := NewProbes(scripted, nil, func(answer func(*resp.Value) error, words ...string) { asked = append(asked, probe{answer, words}) })
	for _, one := range asked {
		reply, found := answers[one.words[0]]
		switch {
		case found:
		case one.words[0] == "SCRIPT" && one.words[2] == ReleaseScript:
			reply = "$40\r\n" + ReleaseSHA1 + "\r\n"
		case one.words[0] == "SCRIPT":
			reply = "$40\r\n" + ExtendSHA1 + "\r\n"
		case one.words[0] == "EVALSHA":
			reply = "*1\r\n:0\r\n"
		default:
			reply = unknown
		}
		if err = one.answer(value(t, reply)); err != nil {
			return 0, err
		}
	}
	return Form(p.Form()), nil
}

// TestFormIsFoundByAsking, not by the server's name for itself.
func TestFormIsFoundByAsking(t *testing.T) {
	for name, test := range map[string]struct {
		delifeq, delex string
		want           Form
	}{
		"Redis 7":              {unknown, unknown, Scripts},
		"Redis 8.4":            {unknown, no, DelEx},
		"Valkey 9.0":           {no, unknown, DelIfEq},
		"Valkey 9.2":           {no, no, DelIfEq},
		"the key was there":    {yes, unknown, DelIfEq},
		"a negative number":    {unknown, ":-1\r\n", DelEx},
		"no DELIFEQ":           {noRight, unknown, Scripts},
		"no DELIFEQ but DELEX": {noRight, no, DelEx},
		"keys out of bounds":   {noKey, unknown, DelIfEq},
		"so they are in 8.4":   {unknown, noKey, DelEx},
		"disk is full":         {"-MISCONF\r\n", "-MISCONF\r\n", Scripts},
		"busy":                 {"-BUSY\r\n", unknown, Scripts},
	} {
		t.Run(name, func(t *testing.T) {
			form, err := probeWith(t, false, map[string]string{"DELIFEQ": test.delifeq, "DELEX": test.delex})
			require.NoError(t, err)
			assert.Equal(t, test.want, form)
		})
	}
	form, err := probeWith(t, true, map[string]string{"DELIFEQ": no})
	require.NoError(t, err)
	assert.Equal(t, Scripts, form)
}

// TestScriptsThatFail: the scripts must be loaded, and must be right; extends need them on every
// node. A passing failure does not keep a node away.
func TestScriptsThatFail(t *testing.T) {
	for _, test := range []struct {
		word, reply string
		want        error
	}{
		{"SCRIPT", unknown, errAny},
		{"SCRIPT", "-NOPERM User x has no permissions to run the 'script|load' command\r\n", nil}, // it was loaded
		{"SCRIPT", "-BUSY Redis is busy\r\n", errAny},
		{"SCRIPT", "$3\r\nabc\r\n", errAny},
		{"SCRIPT", "-NOAUTH Authentication required.\r\n", refusal.ErrAuth},
		{"EVALSHA", noKey, nil},
		{"EVALSHA", "-BUSY Redis is busy running a script.\r\n", nil},
		{"EVALSHA", "-NOSCRIPT No matching script.\r\n", nil},
		{"EVALSHA", "-NOPERM User x has no permissions to run the 'evalsha' command\r\n", refusal.ErrForbidden},
		{"EVALSHA", "-ERR ACL failure in script: User x has no permissions to run the 'mget' command script: on @user_script:1.\r\n", refusal.ErrForbidden},
		{"EVALSHA", "-CLUSTERDOWN Hash slot not served\r\n", refusal.ErrCluster},
	} {
		for _, delifeq := range []string{unknown, no} {
			_, err := probeWith(t, false, map[string]string{test.word: test.reply, "DELIFEQ": delifeq})
			if test.want == errAny {
				assert.Error(t, err, test.reply)
			} else {
				assert.ErrorIs(t, err, test.want, test.reply)
			}
		}
	}
	// Neither loaded nor allowed to be called.
	forbidden := map[string]string{"SCRIPT": noRight, "EVALSHA": noRight}
	_, err := probeWith(t, false, forbidden)
	assert.ErrorContains(t, err, "script|load")
	for _, kind := range []string{"DELIFEQ", "DELEX", "EVALSHA"} { // of a type foreign to the command
		_, err := probeWith(t, false, map[string]string{kind: "+PONG\r\n"})
		if kind != "EVALSHA" { // its answer does not matter
			assert.ErrorIs(t, err, refusal.ErrUnfit, kind)
		}
	}
}

var errAny = refusal.ErrUnfit // stands for any

// TestProbesChangeNothing: all are about the key of no lock.
func TestProbesChangeNothing(t *testing.T) {
	NewProbes(false, nil, func(_ func(*resp.Value) error, words ...string) {
		if words[0] != "SCRIPT" {
			assert.Contains(t, strings.Join(words, " "), probeKey+" ")
		}
	})
}
