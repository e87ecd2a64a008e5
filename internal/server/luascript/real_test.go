package luascript

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// TestRealServersAgree: a real server with an accepted script, of the corpus or a mutant of it, in one of the three
// worlds changes the keys and answers as foretold by the row. The values of others resemble the token, and the
// TTLs are chosen to trip comparisons.
func TestRealServersAgree(t *testing.T) {
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		b := &bystander{t, testkit.DialText(t, realredis.Start(t, realredis.Options{Kind: kind}).Addr())}
		for _, c := range corpus(t, time.Now()) {
			if !strings.HasPrefix(c.want, "refused") {
				require.True(t, b.check(c), c.name)
			}
		}
		mutants, accepted := 4000, 0
		switch {
		case testkit.Long():
			mutants = 600_000
		case testkit.Race: // one goroutine asks
			mutants = 400
		}
		random, all := rand.New(rand.NewPCG(5, 6)), corpus(t, time.Now())
		for range mutants {
			if b.check(mutant(random, all)) {
				accepted++
			}
		}
		t.Logf("%d of %d mutants were accepted", accepted, mutants)
	})
}

var pieces = regexp.MustCompile(`\w+|'[^'\n]*'|"[^"\n]*"|\s+|[.~=<>]+|.`)

// mutant makes a sample with a fault or two, of pieces of its own and of another.
func mutant(r *rand.Rand, all []sample) sample {
	c, other := all[r.IntN(len(all))], all[r.IntN(len(all))]
	has, brings := pieces.FindAllString(c.text, -1), pieces.FindAllString(other.text, -1)
	for range 1 + r.IntN(3)/2 {
		i, j := r.IntN(len(has)), r.IntN(len(has))
		switch r.IntN(5) {
		case 0:
			has[i], has[j] = has[j], has[i]
		case 1:
			has[i] = has[j]
		case 2:
			has[i] = brings[r.IntN(len(brings))]
		case 3:
			has = slices.Insert(has, i, has[j])
		case 4:
			has = append(slices.Delete(has, i, i+1), " ")
		}
	}
	c.text = strings.Join(has, "")
	return c
}

// bystander compares plans with the acts of a server.
type bystander struct {
	t      *testing.T
	server *testkit.TextClient
}

// check reports whether the script is accepted.
func (b *bystander) check(c sample) bool {
	script, err := Parse([]byte(c.text))
	if err != nil {
		return false
	}
	plan, err := script.Classify(c.keys, c.argv, time.Now())
	if err != nil {
		return false
	}
	others := []string{"another's", "free", "1", "", "yours"}
	for n, row := range plan.Rows {
		for i, rest := range []int64{100_000, 400} {
			value := others[(len(c.text)+i)%len(others)]
			if Holding(n) == Owned {
				value = string(plan.Token)
			} else if value == string(plan.Token) {
				value = "one-more"
			}
			if Holding(n) == Absent {
				rest = -2
			}
			b.compare(c, plan, Holding(n), row, value, rest)
		}
	}
	if len(plan.Keys) > 1 {
		b.mix(c, plan)
	}
	return true
}

// compare runs the script with all keys holding value for rest ms.
func (b *bystander) compare(c sample, plan Plan, before Holding, row Row, value string, rest int64) {
	orders := [][]string{{"FLUSHALL"}, {"SELECT", strconv.Itoa(max(plan.DB, 0))}}
	for _, k := range plan.Keys {
		if before != Absent {
			orders = append(orders, []string{"SET", string(k), value, "PX", strconv.FormatInt(rest, 10)})
		}
	}
	orders = append(orders, evalOf(c))
	for _, k := range plan.Keys {
		orders = append(orders, []string{"GET", string(k)}, []string{"PTTL", string(k)})
	}
	var replies []string
	for began := time.Now(); replies == nil || time.Since(began) > 200*time.Millisecond; { // the rest may be twice that
		began, replies = time.Now(), b.pipeline(orders)
	}
	replies = replies[len(replies)-1-2*len(plan.Keys):]
	what := fmt.Sprintf("%s\n%s\nkeys %q, arguments %q, holding %d (%q for %d ms)\n%s\nreplies %q", c.name, c.text, c.keys, c.argv, before, value, rest, written(plan), replies)

	requireReply(b.t, row.Reply, replies[0], value, rest, what)
	for i := range plan.Keys {
		holds, ttl := replies[1+2*i], replies[2+2*i]
		want, left := strconv.Quote(value), rest
		switch row.Effect {
		case Delete:
			want, left = "nil", -2
		case Set:
			want, left = strconv.Quote(string(plan.Token)), row.TTL.Milliseconds
		case Expire:
			left = row.TTL.Milliseconds
			if row.TTL.Rest {
				left += rest
			}
		default:
			if before == Absent {
				want = "nil"
			}
		}
		if row.TTL.None {
			left = -1
		}
		if ttl == ":-2" && left > 0 && left < 50 {
			continue // it has expired meanwhile
		}
		require.Equal(b.t, want, holds, what)
		requireTime(b.t, left, ttl, what)
	}
}

// mix runs the script with the first key different from the others.
func (b *bystander) mix(c sample, plan Plan) {
	for _, its := range []string{"", string(plan.Token), "another's"} {
		for _, theirs := range []string{"", string(plan.Token), "another's"} {
			orders, values := [][]string{{"FLUSHALL"}}, []string{}
			for i, k := range plan.Keys {
				values = append(values, theirs)
				if i == 0 {
					values[i] = its
				}
				if values[i] != "" {
					orders = append(orders, []string{"SET", string(k), values[i], "PX", "100000"})
				}
			}
			orders = append(orders, evalOf(c))
			for _, k := range plan.Keys {
				orders = append(orders, []string{"GET", string(k)})
			}
			replies := b.pipeline(orders)
			for i, now := range replies[len(replies)-len(plan.Keys):] {
				before := strconv.Quote(values[i])
				if values[i] == "" {
					before = "nil"
				}
				if its == theirs || plan.Class == Release && values[i] == string(plan.Token) && now == "nil" {
					continue
				}
				require.Equal(b.t, before, now, "%s\n%s", c.text, written(plan))
			}
		}
	}
}

func evalOf(c sample) []string {
	order := append([]string{"EVAL", c.text, strconv.Itoa(len(c.keys))}, strs(c.keys)...)
	return append(order, strs(c.argv)...)
}

func (b *bystander) pipeline(orders [][]string) (replies []string) {
	var all strings.Builder
	for _, order := range orders {
		all.WriteString(testkit.Encode(order...))
	}
	b.server.Send(all.String())
	for range orders {
		replies = append(replies, b.server.Receive())
	}
	return replies
}

// requireTime allows for the time between commands.
func requireTime(t *testing.T, want int64, got, what string) {
	n, err := strconv.ParseInt(strings.TrimPrefix(got, ":"), 10, 64)
	require.NoError(t, err, what)
	if want < 0 || n < 0 {
		require.Equal(t, want, n, what)
		return
	}
	require.InDelta(t, want, n, 550, what) // EXPIRE with a rest is rounded to seconds
}

func requireReply(t *testing.T, want Reply, got, value string, rest int64, what string) {
	switch want.Kind {
	case Value:
		require.Equal(t, strconv.Quote(value), got, what)
	case PTTL:
		requireTime(t, rest+want.Int, got, what)
	case TTLSeconds:
		require.Equal(t, fmt.Sprintf(":%d", (rest+500)/1000+want.Int), got, what)
	case Array:
		require.True(t, strings.HasPrefix(got, "*["), what)
		items := split(got[2 : len(got)-1])
		require.Len(t, items, len(want.Items), what)
		for i, item := range want.Items {
			requireReply(t, item, items[i], value, rest, what)
		}
	case Int:
		if want.Int > 1000 { // the rest of a TTL set by the script
			requireTime(t, want.Int, got, what)
			return
		}
		require.Equal(t, fmt.Sprintf(":%d", want.Int), got, what)
	default: // Redis writes line breaks as blanks, and so does the front end
		require.Equal(t, strings.NewReplacer("\r", " ", "\n", " ").Replace(shown(want)), got, what)
	}
}

// split takes apart a list of quoted strings and bracketed lists.
func split(list string) (items []string) {
	depth, from, isQuoted := 0, 0, false
	for i := range len(list) + 1 {
		switch {
		case i == len(list) || list[i] == ' ' && depth == 0 && !isQuoted:
			if i > from {
				items = append(items, list[from:i])
			}
			from = i + 1
		case list[i] == '"' && (i == 0 || list[i-1] != '\\'):
			isQuoted = !isQuoted
		case list[i] == '[' && !isQuoted:
			depth++
		case list[i] == ']' && !isQuoted:
			depth--
		}
	}
	return items
}
