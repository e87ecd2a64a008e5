package luascript

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzScript: no text and no arguments make the package crash, hang, print an argument or return a
// plan without a class.
func FuzzScript(f *testing.F) {
	for _, c := range corpus(f, start) {
		args := append(c.argv, nil, nil)
		f.Add(c.text, args[0], args[1])
	}
	f.Fuzz(func(t *testing.T, text string, arg, another []byte) {
		s, err := Parse([]byte(text))
		if err == nil {
			var p Plan
			if p, err = s.Classify([][]byte{[]byte("k"), []byte("l")}, [][]byte{arg, another, arg}, start); err == nil {
				requirePlan(t, p)
				return
			}
		}
		var refusal *Refusal
		require.True(t, errors.As(err, &refusal))
		if len(arg) > 8 && !strings.Contains(strings.ToUpper(text), strings.ToUpper(string(arg))) {
			require.NotContains(t, err.Error(), string(arg))
		}
	})
}

func requirePlan(t *testing.T, p Plan) {
	require.NotEmpty(t, p.Keys)
	require.Equal(t, p.Class, classes[[...]Effect{p.Rows[Absent].Effect, p.Rows[Owned].Effect, p.Rows[Foreign].Effect}])
	if p.Class != Query && p.Class != ForceRelease && p.Class != ForceExtend {
		require.NotNil(t, p.Token)
	}
	for _, row := range p.Rows {
		sets := row.Effect == Set || row.Effect == Expire
		require.Equal(t, sets, row.TTL != TTL{})
		require.True(t, !sets || row.TTL.None || row.TTL.Rest || row.TTL.Milliseconds > 0)
	}
}

// FuzzAliases: a file of aliases is read or refused.
func FuzzAliases(f *testing.F) {
	f.Add(knownAliases)
	f.Add([]byte("-- alias " + strings.Repeat("0", 40) + " keys=9\nreturn redis.call('del', KEYS[1])"))
	f.Fuzz(func(t *testing.T, list []byte) {
		scripts, err := ParseAliases(list)
		for _, s := range scripts {
			require.NoError(t, err)
			if p, err := s.Classify(words("k l", start), words("mine 5000 7000", start), start); err == nil && len(p.Keys) == 1 {
				requirePlan(t, p)
			}
		}
	})
}
