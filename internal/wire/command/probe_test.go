package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/wire/refusal"
	"github.com/redlock-go/redlock/resp"
)

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
	found := Probe(scripted, nil, func(answer func(*resp.Value) error, words ...string) { asked = append(asked, probe{answer, words}) })
	for _, one := range asked {
		reply, found := answers[one.words[0]]
		switch {
		case found:
		case strings.HasPrefix(one.words[0], "EVAL"):
			reply = "*1\r\n:0\r\n"
		default:
			reply = unknown
		}
		if err = one.answer(value(t, reply)); err != nil {
			return 0, err
		}
	}
	return Form(found()), nil
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
	assert.Equal(t, "DELEX, EVALSHA", DelEx.String())
}

// TestScriptsThatFail: nodes must take scripts by their text and by their digest: extends need both
// on every node. A passing failure does not keep a node away.
func TestScriptsThatFail(t *testing.T) {
	for _, word := range []string{"EVAL", "EVALSHA"} {
		for reply, want := range map[string]error{
			unknown: errAny,
			"-ERR Error compiling script (new function)\r\n":      errAny,
			"-NOAUTH Authentication required.\r\n":                refusal.ErrAuth,
			noKey:                                                 nil,
			"-BUSY Redis is busy running a script.\r\n":           nil,
			"-LOADING Redis is loading the dataset in memory\r\n": errAny,
			"-NOSCRIPT No matching script.\r\n":                   nil,
			"-NOPERM User x has no permissions to run the '" + strings.ToLower(word) + "' command\r\n":                       refusal.ErrForbidden,
			"-ERR ACL failure in script: User x has no permissions to run the 'mget' command script: on @user_script:1.\r\n": refusal.ErrForbidden,
			"-CLUSTERDOWN Hash slot not served\r\n": refusal.ErrCluster,
		} {
			for _, delifeq := range []string{unknown, no} {
				_, err := probeWith(t, false, map[string]string{word: reply, "DELIFEQ": delifeq})
				switch want {
				case errAny:
					assert.Error(t, err, reply)
				default:
					assert.ErrorIs(t, err, want, reply)
				}
				if strings.Contains(reply, "to run the '"+strings.ToLower(word)) {
					assert.ErrorContains(t, err, "the command "+strings.ToLower(word))
				}
			}
		}
	}
	for _, kind := range []string{"DELIFEQ", "DELEX"} { // of a type foreign to the command
		_, err := probeWith(t, false, map[string]string{kind: "+PONG\r\n"})
		assert.ErrorIs(t, err, refusal.ErrUnfit, kind)
	}
}

var errAny = refusal.ErrUnfit // stands for any

// TestProbesChangeNothing: all are about the key of no lock.
func TestProbesChangeNothing(t *testing.T) {
	Probe(false, nil, func(_ func(*resp.Value) error, words ...string) {
		assert.Contains(t, strings.Join(words, " "), probeKey+" ")
	})
}
