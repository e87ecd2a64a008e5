package command

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/refusal"
	"github.com/redlock-go/redlock/resp"
)

var forms = []Form{Scripts, DelIfEq, DelEx}

func operands(n int) (all []Operand) {
	for i := range n {
		all = append(all, Operand{Key: fmt.Appendf(nil, "key %d\r\n", i), Token: fmt.Appendf(nil, "%022d", i), TTL: int64(10 + i)})
	}
	return all
}

// readBack writes a command, and has its operands read back, also from the same call by its text.
func readBack(t *testing.T, k Kind, f Form, want []Operand) (written []byte) {
	t.Helper()
	fence := &Fence{Set: "set"}
	fence.Me[1], fence.Known[2] = []byte("f:run"), []byte("active:f:run:n")
	var r Reader
	written = Append(nil, k, f, want, fence)
	require.Equal(t, want, r.Read(k, written))
	require.Equal(t, want, r.Read(k, ByText(slices.Clone(written), 0)))
	return written
}

// TestReleasesOfKeysThatStay are script calls in each form, apart from others, and are read back.
func TestReleasesOfKeysThatStay(t *testing.T) {
	all := operands(6)
	for i, stay := range []int64{0, 0, 7, 7, 8, 0} {
		all[i].TTL = stay
	}
	for _, f := range forms {
		require.True(t, f.For(Release, &all[2]).IsScript(Release))
		require.Equal(t, f, f.For(Release, &all[0]))
		require.Equal(t, f, f.For(Acquire, &all[2]))
	}
	var merged []int
	for left := all; len(left) > 0; {
		n := Merge(Release, Scripts, left, MaxKeys)
		readBack(t, Release, Scripts, left[:n])
		merged, left = append(merged, n), left[n:]
	}
	require.Equal(t, []int{2, 2, 1, 1}, merged)
}

// TestOperandsAreReadBack: the operands are read back from every written command, and each command is within its
// bounds. A call of fenced acquires has blocks of one length.
func TestOperandsAreReadBack(t *testing.T) {
	for _, f := range append(forms, Form(0).ForNode(1), Form(0).ForNode(2)) {
		for _, k := range []Kind{Acquire, Extend, Release} {
			fenced := k == Acquire && f.IsFenced(k)
			all := operands(300)
			for i := range all {
				if k == Release { // keys that do not stay
					all[i].TTL = 0
				} else if i >= 2*MaxKeys {
					all[i].TTL = 10
				}
				if fenced {
					last := 1_790_000_000_000_000 - fencing.Token(i)
					all[i].Block = fencing.Block{First: last - 63, Last: last}
					if i >= 2*MaxKeys {
						all[i].Block.First = last - fencing.Token(i%2)
					}
				}
			}
			for left := all; len(left) > 0; {
				n := Merge(k, f, left, MaxKeys)
				if f.IsScript(k) && !(fenced && len(left) < MaxKeys) {
					require.Equal(t, min(len(left), MaxKeys), n)
				} else {
					require.Equal(t, 1, n)
				}
				readBack(t, k, f, left[:n])
				left = left[n:]
			}
		}
	}
	large := operands(MaxKeys)
	for i := range large {
		large[i].Key, large[i].TTL = bytes.Repeat([]byte{'k'}, 4<<10), 0
	}
	require.Equal(t, callBytes/(4<<10), Merge(Release, Scripts, large, MaxKeys))
	require.Equal(t, 1, Merge(Release, Scripts, large, 1))
}

// TestAnswers: the meaning of each reply to two operands, or to one. A dash stands for a reply that does not fit; the
// answers before it count.
func TestAnswers(t *testing.T) {
	fenced := Form(0).ForNode(1)
	for _, c := range []struct {
		kind  Kind
		form  Form
		n     int
		reply string
		want  string // y granted, n not, g refused by a gate only, or the code of an answer
	}{
		{Acquire, Scripts, 1, "+OK\r\n", "y"}, {Acquire, Scripts, 1, null, "n"}, {Acquire, Scripts, 1, "$-1\r\n", "n"},
		{Acquire, Scripts, 1, yes, "-"}, {Acquire, Scripts, 1, "$2\r\nOK\r\n", "-"},
		{Release, DelIfEq, 1, yes, "y"}, {Release, DelEx, 1, no, "n"}, {Release, DelEx, 1, ":2\r\n", "-"},
		{Release, DelIfEq, 1, "+OK\r\n", "-"}, {Release, DelIfEq, 1, "*1\r\n:1\r\n", "-"},
		{Release, Scripts, 2, "*2\r\n:1\r\n:0\r\n", "yn"}, {Extend, Scripts, 2, "*2\r\n:0\r\n:1\r\n", "ny"},
		{Release, Scripts, 2, "*1\r\n:1\r\n", "-"}, {Release, Scripts, 2, "*3\r\n:1\r\n:1\r\n:1\r\n", "-"},
		{Release, Scripts, 2, "*2\r\n:1\r\n:2\r\n", "y-"}, {Release, Scripts, 2, "*2\r\n+OK\r\n:1\r\n", "-"},
		{Release, Scripts, 1, yes, "y"}, {Release, Scripts, 2, ":2\r\n", "yy"}, {Release, Scripts, 2, yes, "-"},
		{Extend, Scripts, 1, yes, "-"}, {Release, Scripts, 2, "*-1\r\n", "-"}, {Extend, Scripts, 1, "*1\r\n*2\r\n:3\r\n$0\r\n\r\n", "-"},
		{Look, Scripts, 1, no, "y"}, {Look, Scripts, 1, yes, "n"}, {Look, Scripts, 1, ":2\r\n", "-"},
		{Acquire, Shared, 2, "*2\r\n:1\r\n:2\r\n", "yg"}, {Extend, Shared, 2, "*2\r\n:0\r\n:2\r\n", "n-"}, {Extend, Shared, 2, ":2\r\n", "yy"},
		{Acquire, fenced, 2, ":2\r\n", "yy"}, {Acquire, fenced, 2, "*2\r\n:1\r\n*2\r\n:3\r\n$1\r\n7\r\n", "13"}, {Extend, fenced, 1, yes, "-"},
		{Acquire, fenced | Shared, 2, "*2\r\n:0\r\n:2\r\n", "ng"},
		{Acquire, fenced, 3, "*2\r\n:7\r\n$1\r\nf\r\n", "777"}, {Extend, fenced, 1, "*2\r\n:5\r\n$0\r\n\r\n", "5"},
		{Extend, fenced | Shared, 2, "*2\r\n:5\r\n$0\r\n\r\n", "55"}, {Acquire, Scripts, 2, "*2\r\n:5\r\n$0\r\n\r\n", "-"},
		{Release, fenced, 2, "*2\r\n:5\r\n$0\r\n\r\n", "-"}, {Acquire, fenced, 1, "*2\r\n:99\r\n$0\r\n\r\n", "-"},
	} {
		var got strings.Builder
		var a Answers
		for a.Begin(c.kind, c.form, c.n, value(t, c.reply)); a.Next(); {
			switch {
			case a.Fenced.Code != 0:
				fmt.Fprint(&got, int(a.Fenced.Code))
			case a.Granted:
				got.WriteByte('y')
			case a.Gated:
				got.WriteByte('g')
			default:
				got.WriteByte('n')
			}
		}
		if !a.Fits {
			got.WriteByte('-')
		}
		assert.Equal(t, c.want, got.String(), "%v %v %q", c.kind, c.form, c.reply)
	}
}

func refusing(text string) *resp.Value { return &resp.Value{Kind: resp.Error, Bytes: []byte(text)} }

// TestRemedies: the remedy for each refusal.
func TestRemedies(t *testing.T) {
	const (
		noScript = "NOSCRIPT No matching script."
		key      = "NOPERM No permissions to access a key"
		inScript = "ERR Error running script: ACL failure in script: No permissions to access a key"
		right    = "NOPERM User x has no permissions to run the 'evalsha' command"
		busy     = "BUSY Redis is busy running a script."
		oom      = "OOM command not allowed when used memory > 'maxmemory'."
		other    = "ERR something"
		gone     = "READONLY You can't write against a read only replica."
	)
	for _, c := range []struct {
		kind      Kind
		form      Form
		n         int
		text      string
		want      Remedy
		unapplied bool
	}{
		{Release, Scripts, 2, noScript, Spell, false}, {Extend, Scripts, 1, noScript, Spell, false},
		{Release, Scripts, 2, key, Split, true}, {Extend, Scripts, 2, inScript, Split, false},
		{Release, Scripts, 2, other, Split, false}, {Release, Scripts, 1, key, None, true},
		{Release, Scripts, 2, right, None, true}, {Release, Scripts, 2, busy, None, true}, {Extend, Scripts, 2, oom, None, true},
		{Release, DelIfEq, 1, "NOPERM User x has no permissions to run the 'delifeq' command", Rephrase, true},
		{Release, DelEx, 1, other, Rephrase, false},
		{Release, DelIfEq, 1, key, None, true}, {Release, DelIfEq, 1, busy, None, true},
		{Release, DelIfEq, 1, oom, None, true},
		{Acquire, Scripts, 1, key, None, true}, {Acquire, Scripts, 1, oom, None, true}, {Acquire, Scripts, 1, other, None, false},
		{Release, Scripts, 2, gone, None, true},
		{Acquire, Shared, 1, noScript, Spell, false}, {Acquire, Shared, 2, other, None, false}, {Acquire, Shared, 2, key, Split, false},
		{Release, Shared, 2, other, Split, false}, {Extend, Shared, 2, inScript, Split, false},
	} {
		r := Refused(c.kind, c.form, c.n, refusing(c.text), false)
		assert.Equal(t, c.want, r.Remedy, "%v %v %q", c.kind, c.form, c.text)
		assert.Equal(t, c.unapplied, r.Unapplied, c.text)
		assert.Equal(t, c.text == gone, r.Fatal, c.text)
		assert.Error(t, r.Err)
	}
	for f, text := range map[Form]string{DelIfEq: "WRONGTYPE Operation against a key", DelEx: "ERR Key should be of string type if conditions are specified"} {
		assert.True(t, Refused(Release, f, 1, refusing(text), false).NotHeld, "a shared lock")
		assert.False(t, Refused(Acquire, f, 1, refusing(text), false).NotHeld)
	}
	assert.Equal(t, None, Refused(Release, Scripts, 2, refusing(noScript), true).Remedy, "it was called by its text")
	assert.ErrorIs(t, Refused(Acquire, Scripts, 1, refusing(key), false).Err, refusal.ErrForbidden)
}

// TestSharedOperandsAreReadBack out of every written command: the holders of a key stand together, and share its name.
func TestSharedOperandsAreReadBack(t *testing.T) {
	all := operands(200)
	for i := range all {
		all[i].Shared = i < 190
		if i < 60 {
			all[i].Key = []byte("one")
		}
	}
	for _, f := range append(forms, Form(0).ForNode(1), Form(0).ForNode(2)) {
		for _, k := range []Kind{Acquire, Extend, Release} {
			f := f.For(k, &all[0])
			require.True(t, f&Shared != 0 && f.IsScript(k))
			all := slices.Clone(all)
			for i := range all {
				if k == Release {
					all[i].TTL = 0
				}
			}
			var merged []int
			for left := all; len(left) > 10; {
				n := Merge(k, f, left, MaxKeys)
				written := readBack(t, k, f, left[:n])
				require.Equal(t, 1, bytes.Count(written, []byte("\r\none\r\n"))+len(merged), "%q", written)
				merged, left = append(merged, n), left[n:]
			}
			require.Equal(t, []int{128, 62}, merged)
		}
	}
	repair := (DelEx | Scripts.ForNode(1)).Repairing()
	written := readBack(t, Acquire, repair.For(Acquire, &all[0]), all[:1])
	require.Contains(t, string(written), "\r\n$1\r\n1\r\n$1\r\n1\r\n$22", "gates do not refuse it")
	require.Equal(t, Append(nil, Acquire, Scripts, all[190:191], nil), Append(nil, Acquire, repair, all[190:191], nil))
	require.Equal(t, Append(nil, Release, DelEx, all[190:191], nil), Append(nil, Release, repair, all[190:191], nil))
}

func TestDigestsAreThoseOfTheScripts(t *testing.T) {
	for digest, text := range texts {
		assert.Equal(t, digest, fmt.Sprintf("%x", sha1.Sum([]byte(text))))
		assert.Less(t, len(text), 4096, "an unauthenticated client may send at most 16 KiB in one bulk string")
	}
}
