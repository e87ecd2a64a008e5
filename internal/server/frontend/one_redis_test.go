package frontend_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// TestOneRedis: random commands and scripts get the answers of one Redis, apart from the time that passes. The
// differences listed in CLIENTS.md are left out.
func TestOneRedis(t *testing.T) {
	one := &front{addr: realredis.Start(t, realredis.Options{}).Addr()}
	several := start(t, 3, func(c *frontend.Config) { c.NoTTL, c.Force = time.Minute, true })
	a, b := one.dial(t), several.dial(t)
	rounds := 40
	if testkit.Long() {
		rounds = 3900
	}
	var g *rand.Rand
	of := func(words ...string) string { return words[g.IntN(len(words))] }
	const getDel = `local v = redis.call("get", KEYS[1]) if v then redis.call("del", KEYS[1]) end return v`
	const add = `if redis.call("get", KEYS[1]) ~= ARGV[1] then return {-1, redis.call("pttl", KEYS[1])} end return redis.call("pexpire", KEYS[1], redis.call("pttl", KEYS[1]) + ARGV[2])`
	const old = `local t = redis.call("pttl", KEYS[1]) if redis.call("get", KEYS[1]) == ARGV[1] then redis.call("pexpire", KEYS[1], ARGV[2]) end return t`
	const give = `local v = redis.call("get", KEYS[1]) if v == ARGV[1] then redis.call("del", KEYS[1]) end return v`
	const both = `for _, k in ipairs(KEYS) do if redis.call("get", k) ~= ARGV[1] then return 0 end end for _, k in ipairs(KEYS) do redis.call("del", k) end return #KEYS`
	for seed := range uint64(rounds) {
		g = rand.New(rand.NewPCG(seed, 1))
		var said []string
		for step := range 40 {
			key, value := of("a", "b"), of("v", "w")
			ms := 20_000*(1+g.IntN(60)) + 20*step // no two are alike, so a comparison is not of a moment
			px, ex := strconv.Itoa(ms), strconv.Itoa(ms/1000)
			command := strings.Fields(of("GET k", "PTTL k", "TTL k", "EXISTS k", "EXISTS a b a", "SET k v NX PX p", "SET k v PX p NX", "SET k v EX e NX", "SET k v NX PX p GET", "SETNX k v",
				"DEL k", "DEL a b", "UNLINK b a", "GETDEL k", "PEXPIRE k p", "EXPIRE k e", "PEXPIRE k p GT", "PEXPIRE k p LT", "PEXPIRE k p NX", "PEXPIRE k p XX", "EXPIRE k -1", "PEXPIRE k 0 XX",
				"SET k v NX PX 0", "SET k v NX PX", "SET k v NX XX", "PTTL", "EXPIRE k x", "SET k v NX KEEP", "ECHO v",
				"EVAL release 1 k v", "EVAL extend 1 k v p", "EVAL states 1 k v", "EVAL acquire 1 k v p", "EVAL force 1 k", "EVAL getDel 1 k", "EVAL add 1 k v p", "EVAL both 2 a b v", "EVAL old 1 k v p", "EVAL give 1 k v", "EVAL x"))
			for i, word := range command {
				if as, is := map[string]string{"k": key, "v": value, "p": px, "e": ex, "release": release, "extend": extend, "states": states, "acquire": acquire, "force": force, "getDel": getDel, "add": add, "old": old, "give": give, "both": both}[word]; is {
					command[i] = as
				}
			}
			said = append(said, fmt.Sprint(command))
			requireAlike(t, a.DoWords(command...), b.DoWords(command...), said)
		}
		a.Do("DEL a b")
		b.Do("DEL a b")
	}
	t.Logf("%d commands", 40*rounds)
}

// requireAlike allows for the time between the two replies, and for another text of an error.
func requireAlike(t *testing.T, one, several string, said []string) {
	if one == several || one[0] == '-' && several[0] == '-' {
		return
	}
	wants, gots := strings.Fields(strings.Trim(one, "*[]")), strings.Fields(strings.Trim(several, "*[]"))
	require.Len(t, gots, len(wants), "%s\n%s %s", strings.Join(said, "\n"), one, several)
	for i, want := range wants {
		n, err := strconv.Atoi(strings.TrimPrefix(want, ":"))
		got, err2 := strconv.Atoi(strings.TrimPrefix(gots[i], ":"))
		isTime := err == nil && err2 == nil && n > 10 && got > 10
		slack := 10 * time.Second.Milliseconds() // half of the least difference of two TTLs
		if n < 10_000 {
			slack = 10 // they are seconds
		}
		require.True(t, want == gots[i] || isTime && int64(max(n-got, got-n)) <= slack, "%s\n%s %s", strings.Join(said, "\n"), one, several)
	}
}
