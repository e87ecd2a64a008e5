package luascript

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const listed = `
# The token is a prefix of the value.
script 80a1b5f2cfccec3b7119ba7721d2127682b691a7
key    KEYS[1]
token  ARGV[1]
absent set ARGV[3] ms    reply +OK
owned  expire ARGV[3] ms reply +OK
other  none              reply nil

script 6484da7d58920897fdc22b7f9afd1a3d47524ea8
key    KEYS   # all
token  KEYS[1]
absent none reply -3
owned  expire ARGV[2] s longer reply "fine words"
other  none reply -TAKEN by another
`

// TestList: a listed script has a plan like one that was parsed.
func TestList(t *testing.T) {
	scripts, err := ParseList([]byte(listed))
	require.NoError(t, err)
	require.Len(t, scripts, 2)
	require.Equal(t, "80a1b5f2cfccec3b7119ba7721d2127682b691a7", scripts[0].Name())
	keys, argv := words("k l k", start), words("mine 3 5000", start)

	p, err := scripts[0].Classify(keys, argv, start)
	require.NoError(t, err)
	require.Equal(t, `acquire or renew of k by "mine"
absent  set 5000 -> +OK
owned   expire 5000 -> +OK
other   none -> nil`, written(p))

	p, err = scripts[1].Classify(keys, argv, start)
	require.NoError(t, err)
	require.Equal(t, `extend of k l by "k"
absent  none -> -3
owned   expire 3000 unless longer -> "fine words"
other   none -> -TAKEN by another`, written(p))

	for _, call := range []struct{ keys, argv, reason string }{
		{"k", "mine 3", "the call has no ARGV[3]"},
		{"k", "mine 3 soon", "the TTL is no positive integer"},
		{"k", "mine 3 -1", "the TTL is no positive integer"},
		{"", "mine 3 5000", "the call has no KEYS[1]"},
	} {
		_, err := scripts[0].Classify(words(call.keys, start), words(call.argv, start), start)
		require.ErrorContains(t, err, call.reason)
	}
}

// TestListErrors: what a user has mistyped is named with its line.
func TestListErrors(t *testing.T) {
	const head = "script 6484da7d58920897fdc22b7f9afd1a3d47524ea8\nkey KEYS[1]\ntoken ARGV[1]\n"
	const rows = "absent none reply 0\nowned delete reply 1\nother none reply 0\n"
	_, err := ParseList([]byte(head + rows))
	require.NoError(t, err)
	for _, c := range []struct{ list, problem string }{
		{"key KEYS[1]", `line 1: "key" before the first script`},
		{"script abc", "line 1: script takes a SHA1: 40 digits in lower-case hex"},
		{head, "has no row absent"},
		{"script 6484da7d58920897fdc22b7f9afd1a3d47524ea8\n" + rows, "has no key"},
		{"script 6484da7d58920897fdc22b7f9afd1a3d47524ea8\nkey KEYS[1]\n" + rows, "has no token"},
		{head + "absent none reply 0\nabsent none reply 0\n", "line 5: absent twice"},
		{head + "absent set ARGV[2] reply 0\n", `line 4: a TTL is in ms or in s, not in "reply"`},
		{head + "absent set 5000 ms reply 0\n", "is neither KEYS[n] nor ARGV[n]"},
		{head + "absent none\n", "a row ends with reply"},
		{head + "absent none reply OK\n", `"OK" is no reply`},
		{head + "absent steal reply 0\n", `"steal" is none of`},
		{head + "owner none reply 0\n", `"owner" is none of script, key`},
		{head + "absent delete reply 0\nowned none reply 0\nother none reply 0\n", "that is no operation on a lock"},
	} {
		_, err := ParseList([]byte(c.list))
		require.ErrorContains(t, err, c.problem, c.list)
	}
}
