package luascript

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAliases: a script known by its hash acts as its alias, by the rules of any script.
func TestAliases(t *testing.T) {
	byName := map[string]*Script{}
	for _, s := range Known() {
		byName[s.Name] = s
	}
	require.Len(t, byName, len(Known()), "each once")
	for _, c := range []struct{ name, keys, argv, want string }{
		{"80a1b5f2cfccec3b7119ba7721d2127682b691a7", "k", "mine 4 5000", `acquire or renew of k by "mine"
absent  set 5000 -> +OK
owned   expire 5000 -> +OK
other   none -> nil`},
		{"eb0c00d98f6f33b4262419a509002884540f30be", "k l", "mine 4 5000", `acquire of k l by "mine"
absent  set 5000 -> +OK
owned   none -> nil
other   none -> nil`},
		{"c000e088bd4aca36ab429d3b7a16fc736f4cb6f1", "k", "mine 1 5000", `extend of k by "mine"
absent  none -> [-1 -2]
owned   expire 5000 -> [1 pttl+0]
other   none -> [-1 pttl+0]`},
		{"78d3bb55c589f1b2edf66f3527f5017f8dfcd6bb", "k 5000 mine", "", `extend of k by "mine"
absent  none -> 0
owned   expire 5000 -> +OK
other   none -> 0`},
		{"6fdee501a3714553b74c0d67687b921b90b05d18", "k", "1700000000.1 mine 5000", `acquire or renew of k by "mine"
absent  set 5000 -> 1
owned   expire 5000 -> 1
other   none -> nil`},
		{"a70f7f5087a0cb2c2c9ca50d1f64e234c2628f0c", "k", "mine", `release of k by "mine"
absent  none -> nil
owned   delete -> 1
other   none -> nil`},
	} {
		p, err := byName[c.name].Classify(words(c.keys, start), words(c.argv, start), start)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, written(p))
	}
	_, err := byName["80a1b5f2cfccec3b7119ba7721d2127682b691a7"].Classify(words("k l", start), words("mine 4 5000", start), start)
	require.NoError(t, err, "a key that the script does not name")
	_, err = byName["66e1084c2d842a7e8c271925aae90219fac4e129"].Classify(words("k l", start), words("mine", start), start)
	require.ErrorContains(t, err, "the reply is what one of 2 keys holds")
}

// TestAliasErrors: a user's typing errors are named with their line.
func TestAliasErrors(t *testing.T) {
	head := "-- mine\n-- alias " + strings.Repeat("0", 40)
	for text, problem := range map[string]string{
		"return 1":                           "line 1: only comments may stand before",
		"-- alias abc\nreturn 1":             "line 1: \"-- alias \" wants a SHA1",
		head + " keys=x\nreturn 1":           "line 2: \"-- alias \" wants",
		head + "\nreturn redis.call('hget')": "the alias in line 2: ",
		head + "\nreturn 1 1":                "the alias in line 2: ",
	} {
		_, err := ParseAliases([]byte(text))
		require.ErrorContains(t, err, problem, text)
	}
	scripts, err := ParseAliases([]byte(head + "\nreturn redis.call('get', KEYS[1])\n"))
	require.NoError(t, err)
	require.Len(t, scripts, 1)
}
