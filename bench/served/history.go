// Package served proves that the front end is one Redis for its clients: however many use it, some order of their commands on
// one Redis explains every answer.
package served

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

// Script texts of lock clients.
const (
	acquireText = `if redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return 1 end return 0`
	releaseText = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
	giveText    = `local token = redis.call('get', KEYS[1]) if not token or token ~= ARGV[1] then return 0 end redis.call('del', KEYS[1]) return 1`
	extendText  = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`
)

// Plan is what the clients of a history do.
type Plan struct {
	Seed           uint64
	Clients, Steps int             // steps are of each client
	TTLs           []time.Duration // one of these, and up to as much again
	Pause          time.Duration   // the longest between two commands of a client
	IsFrontEnd     bool            // and no Redis: some commands differ
	Slack          Slack
	T              testing.TB
	Dial           func(client int) (net.Conn, error)
	Key            string
}

// Record runs the clients, and returns what they have sent and heard. The error is that of an answer that is none of a lock's.
func (p *Plan) Record() (all []porcupine.Operation, err error) {
	var mu sync.Mutex
	var done sync.WaitGroup
	began := time.Now()
	for i := range p.Clients {
		r := &recorder{Plan: p, id: i, began: began, rng: rand.New(rand.NewPCG(p.Seed, uint64(i))), value: fmt.Sprint("client", i)}
		if p.Seed%5 == 0 {
			r.value = "1" // as of clients with one value for all
		}
		done.Go(func() {
			for range p.Steps {
				r.step()
			}
			if r.wire != nil {
				_ = r.wire.Conn.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, r.said...)
			if err == nil {
				err = r.err
			}
		})
	}
	done.Wait()
	return all, err
}

// Explain looks for an order of the commands on one Redis that gives all answers.
func (p *Plan) Explain(all []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model(p.Slack), all, 10*time.Second)
}

// FirstUnexplained is the time of the first answer without an explanation: those before it have one.
func (p *Plan) FirstUnexplained(all []porcupine.Operation) time.Duration {
	byAnswer := slices.SortedFunc(slices.Values(all), func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	n := sort.Search(len(byAnswer), func(n int) bool {
		answered := byAnswer[n].Return
		var some []porcupine.Operation
		for _, o := range all {
			c, a := o.Input.(Command), o.Output.(Answer)
			switch {
			case o.Call > answered:
				continue
			case o.Return > answered: // not answered yet
				a.Unknown, c.Answered, o.Return = true, c.Answered+unknownFor, o.Return+int64(unknownFor)
			}
			o.Input, o.Output = c, a
			some = append(some, o)
		}
		return p.Explain(some) == porcupine.Illegal
	})
	return time.Duration(byAnswer[min(n, len(byAnswer)-1)].Return)
}

// recorder is one client.
type recorder struct {
	*Plan
	id    int
	began time.Time
	rng   *rand.Rand
	value string
	wire  *testkit.TextClient
	said  []porcupine.Operation
	err   error
}

// lateSet is how long a SET NX takes if nodes were late, and it was asked for twice: see CLIENTS.md, "a burst".
const lateSet = 25 * time.Millisecond

// unknownFor is how long after it an unanswered command may still be run.
const unknownFor = 10 * time.Second

func (r *recorder) step() {
	if r.Pause > 0 {
		time.Sleep(time.Duration(r.rng.Int64N(int64(r.Pause))))
	}
	ttl := r.TTLs[r.rng.IntN(len(r.TTLs))]
	ttl = (ttl + time.Duration(r.rng.Int64N(int64(ttl)))).Truncate(time.Millisecond)
	kind := Kind(r.rng.IntN(kinds))
	if r.rng.IntN(3) == 0 {
		kind = []Kind{Set, Delete, Release}[r.rng.IntN(3)]
	}
	if kind == Overwrite && !r.IsFrontEnd {
		kind = Get
	}
	if kind == Execute {
		watched, _ := r.ask("WATCH", r.Key)
		r.do(Command{Kind: Get}, "GET", r.Key)
		if watched != "+OK" || len(r.said) == 0 || r.said[len(r.said)-1].Output.(Answer).Text != strconv.Quote(r.value) {
			_, _ = r.ask("UNWATCH")
			return
		}
		_, _ = r.ask("MULTI")
		_, _ = r.ask("DEL", r.Key)
		r.do(Command{Kind: Execute, Value: r.value}, "EXEC")
		return
	}
	r.do(Command{Kind: kind, Value: r.value, TTL: ttl}, r.words(kind, ttl)...)
}

// words is one of the commands of a kind.
func (r *recorder) words(kind Kind, ttl time.Duration) []string {
	n := strconv.FormatInt(ttl.Milliseconds(), 10)
	var all, ours [][]string
	switch key, value := r.Key, r.value; kind {
	case Set:
		all = [][]string{{"SET", key, value, "NX", "PX", n}, {"SET", key, value, "PX", n, "NX"}, {"EVAL", acquireText, "1", key, value, n}}
		ours = [][]string{{"RL.LOCK", key, n, "VALUE", value}}
	case SetGet:
		all = [][]string{{"SET", key, value, "NX", "PX", n, "GET"}}
	case Get:
		all = [][]string{{"GET", key}}
	case Left:
		all = [][]string{{"PTTL", key}}
	case Delete:
		all = [][]string{{"DEL", key}, {"UNLINK", key}, {"PEXPIRE", key, "0"}, {"EXPIRE", key, "-1"}}
	case GetDelete:
		all = [][]string{{"GETDEL", key}}
	case Expire:
		all = [][]string{{"PEXPIRE", key, n}}
	case Release:
		all = [][]string{{"EVAL", releaseText, "1", key, value}, {"EVAL", giveText, "1", key, value}}
		ours = [][]string{{"RL.UNLOCK", key, value}, {"DELEX", key, "IFEQ", value}, {"DELIFEQ", key, value}}
	case Extend:
		all = [][]string{{"EVAL", extendText, "1", key, value, n}}
		ours = [][]string{{"RL.EXTEND", key, value, n}, {"SET", key, value, "XX", "PX", n}}
	case Overwrite:
		ours = [][]string{{"SET", key, value}, {"GETSET", key, value}, {"SET", key, value, "PX", n}}
	}
	if r.IsFrontEnd {
		all = append(all, ours...)
	}
	return all[r.rng.IntN(len(all))]
}

// do sends a command, and records it with its answer.
func (r *recorder) do(c Command, words ...string) {
	c.Sent = time.Since(r.began)
	text, err := r.ask(words...)
	c.Answered = time.Since(r.began)
	a := Answer{Text: text, Unknown: err != nil}
	switch {
	case a.Unknown:
	case strings.HasPrefix(text, "-NOQUORUM"), strings.HasPrefix(text, "-ERR the lock changed hands"), strings.HasPrefix(text, "-ERR the connection ends"),
		strings.HasPrefix(text, "-EXECABORT"), strings.HasPrefix(text, "-ERR EXEC without MULTI"): // on a new connection
		a.Unknown = true
	case c.Kind == Overwrite:
		if text[0] != '-' {
			r.err = fmt.Errorf("%q answers %s", words, text)
		}
	case text[0] == '-':
		r.err = fmt.Errorf("%q answers %s", words, text)
	case c.Kind == Set && (text == ":1" || text[0] == '*'):
		a.Text = "+OK"
	case c.Kind == Set && text == ":0", c.Kind == Execute && (text == "*[:0]" || text == "nil array"):
		a.Text = "nil"
	case c.Kind == Extend && text == "nil":
		a.Text = ":0"
	case c.Kind == Extend && text != ":0":
		a.Text = ":1"
	}
	if a.Unknown {
		c.Answered += unknownFor
		if c.Kind == Get || c.Kind == Left || c.Kind == Overwrite {
			return // it explains nothing
		}
	}
	r.said = append(r.said, porcupine.Operation{
		ClientId: r.id, Input: c, Call: int64(c.Sent), Output: a, Return: int64(c.Answered),
	})
	if (c.Kind == Set || c.Kind == SetGet) && r.IsFrontEnd && !a.Unknown && c.Answered-c.Sent > lateSet {
		r.said = append(r.said, porcupine.Operation{ // the first attempt, which may be seen until it is released
			ClientId: r.id + r.Clients*r.Steps, Input: c, Call: int64(c.Sent), Output: Answer{Unknown: true}, Return: int64(c.Answered),
		})
	}
	if a.Unknown { // its next commands are not behind it
		r.id += r.Clients
	}
}

// ask sends a command on the client's connection, or on a new one.
func (r *recorder) ask(words ...string) (text string, err error) {
	if r.wire == nil {
		conn, err := r.Dial(r.id)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			return "", err
		}
		r.wire = testkit.NewTextClient(r.T, conn)
	}
	if text, err = r.wire.Ask(words...); err != nil {
		_ = r.wire.Conn.Close()
		r.wire = nil
	}
	return text, err
}
