package conn

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
)

// exchange has the node answer a batch, and before it what is asked before it.
func (r *testFleet) exchange(look, answer string) *ledger {
	r.t.Helper()
	l := r.send("a")
	r.wires[0].Expect(look + string(l.Buf))
	r.wires[0].Send(answer + echoes("a"))
	r.awaitDone(l)
	return l
}

// TestLook: where tracking is forbidden, a batch after a silence carries the question whether the server was a replica
// meanwhile, and so does one each second. It is answered before the batch: no reply of a server that has changed is handed on.
func TestLook(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		peers := scripted.NewN(t, 1)
		peers[0].Answers = map[string]string{"CLIENT TRACKING": "-NOPERM no permissions to run 'client|tracking'\r\n"}
		r := newTestFleet(t, portable, peers, func(cfg *Config) { cfg.Looks = true })
		r.up()
		look := string(lookOfAll)
		r.exchange("", "")
		for at := time.Duration(0); at < lookEvery-lookAfter; at += lookAfter / 2 {
			r.clock.Advance(lookAfter / 2)
			r.exchange("", "")
		}
		r.clock.Advance(lookAfter - 1)
		r.exchange("", "")
		r.clock.Advance(1)
		r.exchange(look, scripted.InfoOf("role:master\r\n"))
		trips := r.look(0).RoundTrips
		for i, same := range []string{
			scripted.InfoOf("role:master\r\nmaster_replid:i\r\nmaster_replid2:" + strings.Repeat("0", 40) + "\r\n"), // a first replica
			scripted.InfoOf(""),
		} {
			r.clock.Advance(lookAfter)
			require.NoError(t, r.exchange(look, same).errOf(0), same)
			require.Equal(t, trips+uint64(i)+1, r.look(0).RoundTrips, "it is no round trip of a batch")
		}
		for answer, want := range map[string]error{
			"-BUSY a script\r\n": errUnshown,
			scripted.InfoOf("role:slave\r\nmaster_replid:h\r\n"):                      ErrNotMaster,
			scripted.InfoOf("role:master\r\nmaster_replid:i\r\nmaster_replid2:h\r\n"): errChanged,
		} {
			r.clock.Advance(lookAfter)
			require.ErrorIs(t, r.exchange(look, answer).errOf(0), want, answer)
			r.lose(0)
			r.up()
		}
	})
}

// TestEmptied: where the server says that all its keys are gone, no silence needs a look, but what follows this word. A
// batch sent before it was read has failed, however many replies of it are there already.
func TestEmptied(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		r := newUpFleet(t, portable, 1, func(cfg *Config) { cfg.Looks = true })
		const push = ">2\r\n$10\r\ninvalidate\r\n"
		r.clock.Advance(lookEvery - 1)
		r.exchange("", push+"*1\r\n$1\r\nk\r\n")
		require.ErrorIs(t, r.exchange("", push+"_\r\n").errOf(0), ErrEmptied)
		r.exchange(string(lookOfAll), push+"_\r\n"+scripted.InfoOf("role:master\r\n"))
		r.exchange(string(lookOfAll), scripted.InfoOf("role:master\r\n"))
		for _, votes := range []bool{false, true} { // a batch for one node
			l := newLedger(t, []string{"b"})
			l.Votes = votes
			r.do(func() { r.giveTo(0, l) })
			r.wires[0].Expect(string(l.Buf))
			r.wires[0].Send(push + "_\r\n" + echoes("b"))
			r.awaitDone(l)
			require.Equal(t, votes, errors.Is(l.errOf(0), ErrEmptied))
			r.exchange(string(lookOfAll), scripted.InfoOf("role:master\r\n"))
		}
		r.exchange("", push+"_\r\n")
		require.ErrorIs(t, r.exchange(string(lookOfAll), "-BUSY a script\r\n").errOf(0), errUnshown)
		r.lose(0)
		r.up()
		r.exchange("", push+"_\r\n")
		changed := scripted.InfoOf("role:master\r\nmaster_replid:i\r\nmaster_replid2:h\r\n")
		require.ErrorIs(t, r.exchange(string(lookOfAll), changed).errOf(0), errChanged)

		r = newUpFleet(t, portable, 1, func(cfg *Config) { cfg.Looks, cfg.Addresses[0].Persistent = true, true })
		r.clock.Advance(lookEvery)
		within := scripted.InfoOf("role:master\r\n") + push + "_\r\n" + scripted.InfoOf("aof_enabled:1\r\n")
		require.ErrorIs(t, r.exchange(string(lookOfPersistent), within).errOf(0), ErrEmptied)
	})
}
