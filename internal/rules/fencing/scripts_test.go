package fencing_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/fencenode"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

var (
	self  = Me{Fleet: "f3", Run: "r1"}
	later = Me{Fleet: "f3", Run: "r2"}
	other = Me{Fleet: "f5", Run: "r1"}
	both  = Me{Fleet: "f3+f5", Run: "r1"}
	back  = Me{Fleet: "f5+f3", Run: "r1"}
)

// Patterns of what a server answers, as a TextClient shows it.
var (
	anAnswer = regexp.MustCompile(`:(\d+)(?: ("[^"]*"))?`) // a code, and its text
	aWord    = regexp.MustCompile(`"([^"]*)"`)
)

// answersOf returns the answers in a reply.
func answersOf(t *testing.T, reply string) (all []Answer) {
	for _, m := range anAnswer.FindAllStringSubmatch(reply, -1) {
		code, _ := strconv.Atoi(m[1])
		a := Answer{Code: Code(code), Text: strings.Trim(m[2], `"`)}
		number, marker, shows := strings.Cut(a.Text, " ")
		if shows || a.Code == Held || a.Code == Stale || a.Code == Low {
			n, _ := strconv.ParseUint(number, 10, 64)
			a.Token, a.Text = Token(n), marker
			if marker, age, has := strings.Cut(marker, " "); has {
				a.Text = marker
				micros, _ := strconv.Atoi(age)
				a.Age = time.Duration(micros) * time.Microsecond
			}
		}
		all = append(all, a)
	}
	require.NotEmpty(t, all, reply)
	return all
}

// wordsOf returns the texts in a reply.
func wordsOf(reply string) (all []string) {
	for _, m := range aWord.FindAllStringSubmatch(reply, -1) {
		all = append(all, m[1])
	}
	return all
}

func text(m Me) string { return m.Fleet + ":" + m.Run }

// contents shows a node as its sorted set.
func contents(n *fencenode.Node) (all []string) {
	if n.Marker.Phase == Provisional {
		all = append(all, "noticed", fmt.Sprint(-int64(n.Noticed)))
	}
	if n.Marker.Phase != Absent {
		all = append(all, n.Marker.String(), "-1")
	}
	type member struct {
		name  string
		score Token
	}
	members := []member{}
	if n.Floor > 0 {
		members = append(members, member{"floor", n.Floor})
	}
	for _, token := range n.Tokens {
		members = append(members, member{"k" + token.Name, token.F})
	}
	slices.SortFunc(members, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.name, b.name))
	})
	for _, m := range members {
		all = append(all, m.name, fmt.Sprint(m.score))
	}
	return all
}

// held returns the members and scores of the set at a server. Some servers write scores as 1.79e+15.
func held(t *testing.T, s *testkit.TextClient) []string {
	all := wordsOf(s.Do("ZRANGE set 0 -1 WITHSCORES"))
	for i := 1; i < len(all); i += 2 {
		f, err := strconv.ParseFloat(all[i], 64)
		require.NoError(t, err)
		all[i] = strconv.FormatFloat(f, 'f', 0, 64)
	}
	return all
}

// TestScripts: the scripts answer and write as Node answers and keeps, over random requests of two
// runs, two fleets and clients of both, with losses. The fake server runs Node itself, reads the
// requests and writes the answers as real servers do.
func TestScripts(t *testing.T) {
	t.Run("fake", func(t *testing.T) {
		fake := fakeredis.StartN(t, 1)[0]
		compare(t, fake.Addr(), func(at uint64) {
			n, _ := fake.Fence("set")
			n.Noticed = at
			fake.SetFence("set", n)
		})
	})
	for _, kind := range realredis.Kinds() {
		t.Run(kind.String(), func(t *testing.T) { compare(t, realredis.Start(t, realredis.Options{Kind: kind}).Addr(), nil) })
	}
}

// compare compares a server. noticed sets the time of the last repeated notice, in a way of a fake.
func compare(t *testing.T, addr string, noticed func(at uint64)) {
	s := testkit.DialText(t, addr)
	if noticed == nil {
		noticed = func(at uint64) { s.Do(fmt.Sprint("ZADD set ", -int64(at), " noticed")) }
	}
	member := func(args ...string) Answer {
		return answersOf(t, s.DoWords(append([]string{"EVAL", MemberScript, "1", "set"}, args...)...))[0]
	}
	random := rand.New(rand.NewPCG(5, 6))
	var n fencenode.Node
	keys := map[string]string{} // name to nonce
	mes := []Me{self, self, self, self, self, self, self, self, self, self, later, other, both, both, back}
	token := func() Token {
		return Token([...]uint64{random.Uint64N(60), 1_000_000 + random.Uint64N(40), 1_790_000_000_000_000 + random.Uint64N(3)*1_000_000_000,
			MaxToken - 3 + random.Uint64N(6)}[min(random.IntN(40)/11, 3)])
	}
	seen, ages := map[string]int{}, 0
	for call := range 4_000 {
		me := mes[random.IntN(len(mes))]
		at := wordsOf(s.Do("TIME"))
		now, err := strconv.ParseUint(at[0]+fmt.Sprintf("%06s", at[1]), 10, 64)
		require.NoError(t, err)
		made := func(a Answer) uint64 { // the TIME in a nonce that the call has made
			m := ParseMarker(a.Text)
			if _, at, has := strings.Cut(m.Nonce, "."); has && m != n.Marker {
				executed, err := strconv.ParseUint(at, 10, 64)
				require.NoError(t, err)
				require.InDelta(t, now, executed, 60e6)
				return executed
			}
			return now
		}
		verb, nonce, x := "", fmt.Sprint(me.Fleet, "/n", random.IntN(2)), token()
		if n.Marker.Phase == Provisional && random.IntN(100) == 0 { // its clients have not been here for long
			n.Noticed -= min(n.Noticed, uint64(2*Lapse.Microseconds()))
			noticed(n.Noticed)
		}
		before, which := n.Marker, random.IntN(16)
		ofMembers := which < 5 || which > 11
		lapsed := ofMembers && n.Lapse(me, now)
		if lapsed {
			seen["lapsed"]++
		}
		var want, got []Answer
		var known []string // of a client of two configurations: the marker, or one before it
		if strings.Contains(me.Fleet, "+") {
			known = []string{"active:" + me.Fleet + ":" + me.Run + ":before"}
			if n.Marker.Serves(me) && call%4 > 0 {
				known[0] = n.Marker.String()
			}
		}
		switch which {
		case 0:
			verb = "notice"
			a := member("notice", text(me), nonce)
			want, got = []Answer{n.Notice(me, nonce, made(a))}, []Answer{a}
		case 1, 2:
			verb = "rejoin"
			if random.IntN(2) == 0 {
				nonce = n.Marker.Nonce
			}
			fleet := mes[random.IntN(len(mes))].Fleet
			want = []Answer{n.Rejoin(me, nonce, x, fleet)}
			got = []Answer{member("rejoin", text(me), nonce, fmt.Sprint(x), fleet)}
		case 3:
			verb = "read"
			want, got = []Answer{n.Read(me)}, []Answer{member("read", text(me))}
		case 4:
			verb = "raise"
			want, got = []Answer{n.Raise(me, x)}, []Answer{member("raise", text(me), fmt.Sprint(x))}
		case 12:
			verb = "collect"
			age, before := now-min(now, uint64(x)), n.Floor
			a := member("collect", text(me), fmt.Sprint(age))
			if all := held(t, s); a.Code == OK && slices.Contains(all, "floor") {
				floor, err := strconv.ParseUint(all[slices.Index(all, "floor")+1], 10, 64)
				require.NoError(t, err)
				if Token(floor) != before { // and so shows its TIME
					require.InDelta(t, now, floor+age, 60e6)
					now = floor + age
				}
			}
			want, got = []Answer{n.Collect(me, age, now)}, []Answer{a}
		case 13:
			verb = "show"
			a := member("show", text(me))
			require.InDelta(t, n.Age(me, now), a.Age, 5e9)
			ages += int(min(a.Age, 1))
			a.Age = 0
			want, got = []Answer{n.Show(me)}, []Answer{a}
		case 15:
			verb = "seal"
			a := member("seal", text(me), nonce)
			want, got = []Answer{n.Seal(me, nonce, made(a))}, []Answer{a}
		case 14:
			if random.IntN(4) > 0 {
				n.Marker = before
				continue
			}
			verb = "resume"
			a := member("resume", text(me), nonce)
			want, got = []Answer{n.Resume(me, nonce, made(a))}, []Answer{a}
		case 5:
			verb = "extend"
			names := []string{"a", "b"}
			args := []string{"EVAL", ExtendScript, "3", "set", "a", "b", text(me), nonce, "m", "900000", "900000"}
			for i, hold := range []string{nonce, "m"} {
				want = append(want, n.Extend(me, keys[names[i]] == hold))
			}
			got = answersOf(t, s.DoWords(append(args, known...)...))
		case 6:
			if random.IntN(40) == 0 || n.Floor > 1e12 || n.Marker.Me != self && random.IntN(4) == 0 {
				s.Do("DEL set")
				n = fencenode.Node{}
			}
			keys = map[string]string{}
			s.Do("DEL a b c")
		default:
			verb = "acquire"
			args := []string{"EVAL", AcquireScript, "3", "set", "", "", text(me)}
			spare, least, lasts := Token(random.Uint64N(3)), Token(MaxToken), ""
			for i, name := range []string{"a", "b"} {
				name = string(rune(name[0]) + rune(random.IntN(2)))
				first := x + Token(random.IntN(3)) - min(x, 1)
				b := Block{first, first + spare}
				args[4+i] = name
				least, lasts = min(least, b.First), lasts+fmt.Sprintf("%0*d", LastDigits, b.Last)
				a := n.Acquire(me, name, b, keys[name] != "")
				if a.Code == OK {
					keys[name] = nonce
				}
				want = append(want, a)
			}
			args = append(args, fmt.Sprint(least), fmt.Sprint(spare))
			if call%2 == 0 {
				args = append(args, "900000", lasts, nonce, nonce)
			} else {
				args = append(args, "", lasts, nonce, nonce, "900000", "800000")
			}
			reply := s.DoWords(append(args, known...)...)
			if reply == ":2" {
				got = []Answer{{Code: OK}, {Code: OK}}
				break
			}
			got = answersOf(t, reply)
			require.NotEqual(t, []Answer{{Code: OK}, {Code: OK}}, got)
		}
		if len(got) < len(want) && (got[0].Code == Amnesia || got[0].Code == Foreign) { // of the node: it counts for both keys
			got = append(got, got[0])
		}
		require.Equal(t, want, got, "call %d: %s", call, verb)
		if lapsed && n.Marker.Phase == Absent {
			n.Marker = before // it is there still
		}
		has := held(t, s)
		if n.Marker.Phase == Provisional { // by the node's TIME
			at, err := strconv.ParseInt(has[1], 10, 64)
			require.NoError(t, err)
			require.InDelta(t, n.Noticed, -at, 5e6, "call %d: %s", call, verb)
			n.Noticed = uint64(-at)
		}
		require.Equal(t, contents(&n), has, "call %d: %s", call, verb)
		for _, a := range want {
			seen[verb+" "+a.Code.String()]++
		}
	}
	t.Log(seen, ages)
	require.Positive(t, ages)
	for _, what := range strings.Split("acquire OK,acquire HELD,acquire STALE,acquire AMNESIA,acquire FOREIGN,acquire INVALID,"+
		"extend OK,extend GONE,extend AMNESIA,read OK,read AMNESIA,show OK,show FOREIGN,raise OK,raise INVALID,raise AMNESIA,collect OK,collect AMNESIA,"+
		"notice AMNESIA,notice ACTIVE,notice FOREIGN,seal OK,seal AMNESIA,seal FOREIGN,read FOREIGN,rejoin OK,rejoin AMNESIA,rejoin ACTIVE,rejoin INVALID,resume OK,resume AMNESIA,resume ACTIVE,lapsed", ",") {
		require.Positive(t, seen[what], what)
	}
}
