package served

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Command is one that a client has sent about the key of a history.
type Command struct {
	Kind     Kind
	Value    string        // of the client
	TTL      time.Duration // to be set
	Sent     time.Duration // since the beginning of the history
	Answered time.Duration
}

// Kind is what a command does. Several commands, and scripts, do the same.
type Kind uint8

// The kinds.
const (
	Set       Kind = iota // SET NX PX: OK or nil
	SetGet                // SET NX PX GET: nil, or the value of the holder
	Get                   // GET: the value or nil
	Left                  // PTTL
	Delete                // DEL, UNLINK, PEXPIRE 0: 1 or 0
	GetDelete             // GETDEL
	Expire                // PEXPIRE: 1 or 0
	Release               // a script, RL.UNLOCK: 1 or 0
	Extend                // a script, RL.EXTEND: 1 or 0
	Execute               // EXEC with a DEL, after WATCH and a GET of the value: 1, or nil
	Overwrite             // SET without NX, GETSET: refused, and nothing has changed
	kinds     = iota
)

func (k Kind) String() string {
	return [kinds]string{"SET NX", "SET NX GET", "GET", "PTTL", "DEL", "GETDEL", "PEXPIRE", "release", "extend", "EXEC", "SET"}[k]
}

// Answer is the reply to a command. Unknown: an error, or none. The command may have been run, or be run later.
type Answer struct {
	Text    string
	Unknown bool
}

// register is the key as one Redis has it: a value until some moment. The moment of an expiry is known to lie between two
// times, since that of a command lies between its sending and its answer. What is seen later narrows it down.
type register struct {
	value    string // "" is an absent key
	from, to time.Duration
	cut      time.Duration // a server that has made the TTL shorter releases the lock then; 0: none does
}

// Slack is by how much an expiry may be off: by the milliseconds of a server, and, behind several servers, by their padding.
// IsLong: a server does not know of a TTL that was made shorter through another one, and neither does this of an extension
// that is shorter than the old TTL. And where the time of a lock is over for the clients of its server, others may show it
// for the rest of its padding.
type Slack struct {
	Early, Late time.Duration
	IsLong      bool
}

// model is one Redis with one key. A history fits it if some order of the commands gives each answer.
func model(slack Slack) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{register{}} },
		Step: func(state, input, output any) (next []any) {
			r, c, a := state.(register), input.(Command), output.(Answer)
			for _, seen := range r.worlds(c, slack) {
				for _, after := range seen.run(c, a, slack) {
					next = append(next, after)
					if slack.IsLong && seen.value == "" && after.value == "" && c.Sent <= r.to+slack.Late {
						next = append(next, r) // another server may show it still
					}
				}
			}
			return next
		},
		DescribeOperation: func(input, output any) string {
			c, a := input.(Command), output.(Answer)
			return fmt.Sprintf("%v %s %v -> %s", c.Kind, c.Value, c.TTL, a.Text)
		},
	}
	return m.ToModel()
}

// worlds are the key as the command may find it: there, or expired by then.
func (r register) worlds(c Command, slack Slack) (all []register) {
	if r.value == "" {
		return []register{r}
	}
	if c.Sent <= r.to+slack.Late {
		all = append(all, r)
	}
	if c.Answered >= r.from-slack.Early {
		all = append(all, register{})
	}
	return all
}

// run returns the keys after the command, if it answers so in this world, else none.
func (r register) run(c Command, a Answer, slack Slack) []register {
	set := register{value: c.Value, from: c.Sent + c.TTL, to: c.Answered + c.TTL}
	isThere, isOwn := r.value != "", r.value == c.Value
	extended := register{value: r.value, from: set.from, to: set.to, cut: r.cut}
	if slack.IsLong {
		extended.to = max(extended.to, r.to)
		if set.from < r.to && (r.cut == 0 || set.from < r.cut) {
			extended.cut = set.from
		}
		if extended.cut > 0 {
			extended.from = min(extended.from, extended.cut)
		}
	}
	one := func(is bool) string {
		if is {
			return ":1"
		}
		return ":0"
	}
	shown := "nil"
	if isThere {
		shown = strconv.Quote(r.value)
	}
	after, want := r, ""
	switch c.Kind {
	case Set:
		want = "nil"
		if !isThere {
			after, want = set, "+OK"
		}
	case SetGet:
		want = shown
		if !isThere {
			after = set
		}
	case Get:
		want = shown
	case Left:
		return r.left(c, a, slack)
	case Delete:
		want, after = one(isThere), register{}
	case GetDelete:
		want, after = shown, register{}
	case Expire:
		want = one(isThere)
		if isThere {
			after = extended
		}
	case Release:
		want = one(isOwn)
		if isOwn {
			after = register{}
		}
	case Extend:
		want = one(isOwn)
		if isOwn {
			after = extended
		}
	case Execute:
		switch {
		case a.Text == "nil" && !a.Unknown:
			return []register{r} // the lock was changed since the WATCH, if only its time
		case isOwn:
			want, after = "*[:1]", register{}
		case a.Unknown:
			return []register{r}
		}
	case Overwrite:
		return []register{r}
	}
	switch {
	case a.Unknown && after != r:
		if after.value != "" { // the release of an unknown lock may follow at any time
			after.from = min(c.Sent, r.from)
			after.to = max(after.to, r.to)
		}
		return []register{r, after}
	case a.Unknown || a.Text == want:
		return []register{after}
	}
	return nil
}

// left narrows the expiry down by the rest that was shown.
func (r register) left(c Command, a Answer, slack Slack) []register {
	n, err := strconv.Atoi(strings.TrimPrefix(a.Text, ":"))
	shown := time.Duration(n) * time.Millisecond
	switch {
	case a.Unknown:
	case err != nil || (n == -2) != (r.value == ""):
		return nil
	case n == -2:
	case c.Sent+shown > r.to+slack.Late, c.Answered+shown < r.from-slack.Early:
		return nil
	}
	return []register{r}
}
