package fakeredis

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// TestSharedScripts calls the scripts of shared locks at random, on a fake and on real servers, and compares each answer,
// and all that the keys are then, with what the scripts promise. Time passes between any two commands, so what ends
// meanwhile may be there or not.
func TestSharedScripts(t *testing.T) {
	t.Parallel()
	steps := 2000
	switch {
	case testkit.Long():
		steps = 100_000
	case testkit.Race: // one goroutine asks
		steps = 500
	}
	play := func(t *testing.T, addr string) {
		seed := rand.Uint64()
		w := sharedWorld{T: t, c: testkit.DialText(t, addr), rnd: rand.New(rand.NewPCG(seed, 1)), seed: seed, said: map[int]int{}}
		fewest := func() int { return min(w.said[0], w.said[1], w.said[2]) }
		for i := 0; i < steps || fewest() <= steps/200 && i < 20*steps; i++ { // on a busy machine most gates end too soon
			w.step(i)
		}
		require.Greater(t, fewest(), steps/200, "too few were granted, denied, or refused by a gate: %v", w.said)
	}
	t.Run("fake", func(t *testing.T) { play(t, StartN(t, 1)[0].Addr()) })
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		play(t, realredis.Start(t, realredis.Options{Kind: kind}).Addr())
	})
}

// sharedWorld is a server with some keys, each with a gate beside it.
type sharedWorld struct {
	*testing.T
	c    *testkit.TextClient
	rnd  *rand.Rand
	seed uint64
	said map[int]int // how often an acquire was answered so
}

// held is what a key is: a string, the holders of a shared lock with their ends, or something that is no lock.
type held struct {
	kind    string
	value   string
	end     int64 // of the key; -1: never
	holders map[string]int64
}

func (h *held) isShared() bool { return h != nil && h.kind == sharedKind && h.end > 0 }

// isThere reports whether a key that was seen is still there at an instant.
func (h *held) isThere(at int64) bool { return h != nil && (h.end < 0 || h.end > at) }

// hasGone reports whether it certainly was not there at an instant.
func (h *held) hasGone(at int64) bool { return h == nil || h.end > 0 && h.end < at-1 }

func (w *sharedWorld) now() int64 {
	words := w.words(w.c.Do("TIME"))
	s, _ := strconv.ParseInt(words[0], 10, 64)
	us, _ := strconv.ParseInt(words[1], 10, 64)
	return s*1000 + us/1000
}

// words are the elements of an array of texts or numbers.
func (w *sharedWorld) words(reply string) (words []string) {
	for _, word := range strings.Fields(strings.Trim(reply, "*[]")) {
		words = append(words, strings.Trim(word, `":`))
	}
	return words
}

func (w *sharedWorld) read(key string) *held {
	h := &held{kind: w.c.Do("TYPE " + key)[1:]}
	h.end, _ = strconv.ParseInt(w.c.Do("PEXPIRETIME " + key)[1:], 10, 64)
	switch h.kind {
	case stringKind:
		h.value = strings.Trim(w.c.Do("GET "+key), `"`)
	case sharedKind:
		h.holders = map[string]int64{}
		all := w.words(w.c.Do("ZRANGE " + key + " 0 -1 WITHSCORES"))
		for i := 0; i+1 < len(all); i += 2 {
			end, err := strconv.ParseFloat(all[i+1], 64)
			require.NoError(w, err)
			h.holders[all[i]] = int64(end)
		}
	}
	if h.kind == "none" || h.end == -2 || w.c.Do("EXISTS "+key) == ":0" { // it may have ended meanwhile
		return nil
	}
	return h
}

// asked is one key of a call: what was there before, and for whom it is asked.
type asked struct {
	key    string
	before *held
	gate   *held
	tokens []string
	ttls   []int64
}

func (w *sharedWorld) step(i int) {
	keys := []string{"a", "b", "{c}:d", "e"}
	w.rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var all []asked
	for _, key := range keys[:1+w.rnd.IntN(3)] {
		all = append(all, asked{key: key, before: w.read(key), gate: w.read(key + ":redlock:gate")})
	}
	switch verb := w.rnd.IntN(10); verb {
	case 0, 1, 2, 3:
		w.acquire(i, all, verb == 0)
	case 4, 5:
		w.release(i, all)
	case 6:
		w.extend(i, all)
	case 7:
		w.foreign(i, &all[0])
	case 8:
		gate := all[0].key + ":redlock:gate"
		if w.rnd.IntN(2) == 0 {
			w.c.Must("SET " + gate + " x PX " + fmt.Sprint(w.ttl()))
		} else {
			w.c.Do("DEL " + gate)
		}
	default:
		time.Sleep(time.Duration(w.rnd.IntN(4000)) * time.Microsecond)
	}
}

func (w *sharedWorld) ttl() int64 { return []int64{1, 2, 3, 5, 20, 60, 400}[w.rnd.IntN(7)] }

// tokens makes or picks tokens for each key: new ones, or most of them of holders.
func (w *sharedWorld) tokens(i int, all []asked, fresh bool) {
	for at := range all {
		k := &all[at]
		for n := range 1 + w.rnd.IntN(4) {
			token := fmt.Sprintf("t%d.%d", i, n)
			if holders := slices.Sorted(maps.Keys(k.holders())); !fresh && len(holders) > 0 && w.rnd.IntN(4) > 0 {
				token = holders[w.rnd.IntN(len(holders))]
			}
			if !slices.Contains(k.tokens, token) {
				k.tokens, k.ttls = append(k.tokens, token), append(k.ttls, w.ttl())
			}
		}
	}
}

func (k *asked) holders() map[string]int64 {
	if k.before == nil {
		return nil
	}
	return k.before.holders
}

// call runs a script, and returns its answers for each token, and the instants between which it ran.
func (w *sharedWorld) call(which int, all []asked, first ...string) (answers [][]int, before, after int64) {
	keys, argv, n := []string{}, first, 0
	for _, k := range all {
		keys = append(keys, k.key)
		if which == sharedAcquire {
			keys = append(keys, k.key+":redlock:gate")
		}
		argv = append(argv, fmt.Sprint(len(k.tokens)))
		for at, token := range k.tokens {
			argv = append(argv, token)
			if which != sharedRelease {
				argv = append(argv, fmt.Sprint(k.ttls[at]))
			}
		}
		n += len(k.tokens)
	}
	before = w.now()
	reply := w.c.DoWords(slices.Concat([]string{"EVAL", texts[which], fmt.Sprint(len(keys))}, keys, argv)...)
	after = w.now()
	said := w.words(reply)
	if reply == fmt.Sprint(":", n) {
		said = slices.Repeat([]string{"1"}, n)
	}
	require.Len(w, said, n, "%s, seed %d", reply, w.seed)
	for _, k := range all {
		var of []int
		for _, word := range said[:len(k.tokens)] {
			number, err := strconv.Atoi(word)
			require.NoError(w, err, reply)
			of = append(of, number)
		}
		answers, said = append(answers, of), said[len(k.tokens):]
	}
	return answers, before, after
}

// span is when a holder ends, to be between two instants; the zero span: it is none.
type span struct{ from, to int64 }

func (w *sharedWorld) acquire(i int, all []asked, restores bool) {
	w.tokens(i, all, !restores)
	mode := "0"
	if restores {
		mode = "1"
	}
	answers, before, after := w.call(sharedAcquire, all, mode)
	for at, k := range all {
		got := answers[at][0]
		w.said[got]++
		require.Len(w, slices.Compact(answers[at]), 1, "one answer for a key")
		fails := func(what string) { w.fails(what, &k, nil, got) }
		taken := k.before.isThere(after+2) && !k.before.isShared()
		gated := !restores && k.gate.isThere(after+2)
		switch {
		case got == 1 && (taken || gated):
			fails("granted beside another, or past a gate")
		case got == 2 && (restores || k.gate.hasGone(before) || taken && k.before.kind == stringKind):
			fails("refused by a gate alone")
		case got != 1 && (restores || k.gate.hasGone(before)) && (k.before.hasGone(before) || k.before.isThere(after+2) && k.before.isShared()):
			fails("refused without a reason")
		}
		mine := map[string]span{}
		for n, token := range k.tokens {
			s := span{before + 1 + k.ttls[n], after + 1 + k.ttls[n]}
			if end := k.holders()[token]; end > after {
				s = span{end, end} // it was there, and stays as it is
			} else if end > 0 {
				s = span{min(end, s.from), max(end, s.to)}
			}
			if got == 1 {
				mine[token] = s
			}
		}
		w.check("acquire", &k, mine)
	}
}

func (w *sharedWorld) release(i int, all []asked) {
	w.tokens(i, all, false)
	answers, _, after := w.call(sharedRelease, all)
	for at, k := range all {
		mine := map[string]span{}
		for n, token := range k.tokens {
			got, was := answers[at][n], k.holders()[token] > 0
			if got == 1 && !was || got == 0 && was && k.before.isThere(after+2) {
				w.fails("release", &k, nil, got)
			}
			if was {
				mine[token] = span{}
			}
		}
		w.check("release", &k, mine)
	}
}

func (w *sharedWorld) extend(i int, all []asked) {
	w.tokens(i, all, false)
	for at := range all { // one is extended twice
		k := &all[at]
		k.tokens, k.ttls = append(k.tokens, k.tokens[0]), append(k.ttls, w.ttl())
	}
	answers, before, after := w.call(sharedExtend, all)
	for at, k := range all {
		mine := map[string]span{}
		for n, token := range k.tokens {
			end, got := k.holders()[token], answers[at][n]
			if got == 1 && end <= before || got == 0 && end > after && k.before.isShared() {
				w.fails("extend", &k, nil, got)
			}
			if got == 1 {
				s := mine[token]
				mine[token] = span{max(end, s.from, before+1+k.ttls[n]), max(end, s.to, after+1+k.ttls[n])}
			}
		}
		w.check("extend", &k, mine)
	}
}

func (w *sharedWorld) foreign(i int, k *asked) {
	switch {
	case k.before != nil && k.before.end < 0:
		w.c.Do("DEL " + k.key)
	case w.rnd.IntN(3) == 0:
		w.c.Must("SET " + k.key + " eternal")
	default:
		reply := w.c.Do(fmt.Sprintf("SET %s x%d NX PX %d", k.key, i, w.ttl()))
		if reply == "+OK" && k.before.isThere(w.now()+2) {
			w.fails("SET NX beside another", k, nil, 1)
		}
	}
}

// check compares a key with what it was: whose end is not in mine is as it was, and the key ends with the last.
func (w *sharedWorld) check(what string, k *asked, mine map[string]span) {
	now := w.read(k.key)
	late := w.now()
	if old := k.before; old.isThere(late+2) && !old.isShared() && (now == nil || now.value != old.value || now.end != old.end) {
		w.fails(what+": another's key was changed", k, now, 0)
	}
	ends := map[string]int64{}
	if now != nil {
		ends = now.holders
	}
	for token, end := range k.holders() {
		if _, is := mine[token]; !is && end > late && ends[token] != end {
			w.fails(what+": another was changed", k, now, 0)
		}
	}
	for token, s := range mine {
		end, is := ends[token]
		if s == (span{}) && is || s.from > late && (end < s.from || end > s.to) {
			w.fails(fmt.Sprint(what, ": ", token, " does not end within ", s), k, now, 0)
		}
	}
	if now.isShared() && slices.Max(slices.Collect(maps.Values(now.holders))) != now.end {
		w.fails(what+": the key does not end with its last holder", k, now, 0)
	}
	if now != nil && now.kind == sharedKind && now.end < 0 {
		w.fails(what+": the key has no end", k, now, 0)
	}
}

func (w *sharedWorld) fails(what string, k *asked, now *held, said int) {
	w.Helper()
	require.Failf(w, what, "key %s, said %d, seed %d\nasked %v %v\ngate %+v\nbefore %+v\nafter %+v", k.key, said, w.seed, k.tokens, k.ttls, k.gate, k.before, now)
}
