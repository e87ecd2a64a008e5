package luascript

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// start is the time of the calls of the corpus in tests without servers.
var start = time.Unix(1_700_000_000, 0)

// sample is an entry of testdata/corpus.txt.
type sample struct {
	name, text, want string
	keys, argv       [][]byte
}

// corpus returns the samples as calls at the time now.
func corpus(t testing.TB, now time.Time) (samples []sample) {
	file, err := os.ReadFile("testdata/corpus.txt")
	require.NoError(t, err)
	_, entries, _ := strings.Cut(string(file), "\n=== ")
	for _, entry := range strings.Split(entries, "\n=== ") {
		head, body, _ := strings.Cut(entry, "\n")
		call, body, _ := strings.Cut(body, "\n")
		text, want, _ := strings.Cut(body, "\n--- ")
		keys, argv, ok := strings.Cut(strings.TrimPrefix(call, "call "), "/")
		require.True(t, ok, head)
		samples = append(samples, sample{name: head, text: text, want: strings.TrimSpace(want), keys: words(keys, now), argv: words(argv, now)})
	}
	require.Greater(t, len(samples), 100)
	return samples
}

func words(s string, now time.Time) (bs [][]byte) {
	for _, word := range strings.Fields(s) {
		if after, isTime := strings.CutPrefix(word, "@"); isTime {
			n, inSeconds := strings.CutSuffix(after, "s")
			offset, _ := strconv.ParseInt(n, 10, 64)
			word = strconv.FormatInt(now.UnixMilli()+offset, 10)
			if inSeconds {
				word = strconv.FormatInt(now.Unix()+offset, 10)
			}
		}
		bs = append(bs, []byte(strings.Trim(word, `"`)))
	}
	return bs
}

// TestCorpus: no script of the corpus is classified wrongly, and refusals give the reason.
func TestCorpus(t *testing.T) {
	for _, c := range corpus(t, start) {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, outcomeOf(c)) })
	}
}

func outcomeOf(c sample) string {
	s, err := Parse([]byte(c.text))
	if err == nil {
		var p Plan
		if p, err = s.Classify(c.keys, c.argv, start); err == nil {
			return written(p)
		}
	}
	return "refused: " + err.(*Refusal).Reason
}

// written shows a plan as the corpus does.
func written(p Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s", p.Class, strings.Join(strs(p.Keys), " "))
	if p.Token != nil {
		fmt.Fprintf(&b, " by %q", p.Token)
	}
	if p.DB >= 0 {
		fmt.Fprintf(&b, " in database %d", p.DB)
	}
	for i, row := range p.Rows {
		fmt.Fprintf(&b, "\n%-7s %s -> %s", []string{"absent", "owned", "other"}[i], effectOf(row), shown(row.Reply))
	}
	return b.String()
}

func strs(bs [][]byte) (s []string) {
	for _, b := range bs {
		s = append(s, string(b))
	}
	return s
}

func effectOf(row Row) string {
	effect := [...]string{"none", "set", "delete", "expire"}[row.Effect]
	if row.Effect != Set && row.Effect != Expire {
		return effect
	}
	switch ttl := row.TTL; {
	case ttl.None:
		return effect + " forever"
	case ttl.Rest:
		return fmt.Sprintf("%s rest+%d", effect, ttl.Milliseconds)
	default:
		return fmt.Sprintf("%s %d", effect, ttl.Milliseconds)
	}
}

func shown(r Reply) string {
	switch r.Kind {
	case Int:
		return fmt.Sprint(r.Int)
	case Bulk:
		return fmt.Sprintf("%q", r.Text)
	case Status:
		return "+" + string(r.Text)
	case Error:
		return "-" + string(r.Text)
	case Array:
		items := []string{}
		for _, item := range r.Items {
			items = append(items, shown(item))
		}
		return "[" + strings.Join(items, " ") + "]"
	case Value:
		return "value"
	case PTTL:
		return fmt.Sprintf("pttl+%d", r.Int)
	case TTLSeconds:
		return fmt.Sprintf("ttl+%d", r.Int)
	}
	return "nil"
}
