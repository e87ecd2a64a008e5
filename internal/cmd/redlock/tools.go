package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/redlock-go/redlock"
)

// tool holds the settings of a command about the nodes.
type tool struct{ *settings }

// newTool returns the settings of a tool, a client of the nodes and the arguments.
func newTool(env *environment, use, about string, args []string) (*tool, *redlock.Client, []string, error) {
	t := &tool{newSettings(env, use, about)}
	rest, err := t.parse(args)
	if err != nil {
		return nil, nil, nil, err
	}
	t.stragglers, t.looks = max(time.Second, t.nodeTimeout), true // a tool is about all nodes
	client, err := t.connect(t.logger())
	return t, client, rest, err
}

// print prints v as JSON, or as text by write.
func (t *tool) print(v any, write func(w *tabwriter.Writer)) error {
	if t.json {
		out := json.NewEncoder(t.env.out)
		out.SetIndent("", "  ")
		return out.Encode(v)
	}
	w := tabwriter.NewWriter(t.env.out, 0, 8, 2, ' ', 0)
	write(w)
	return w.Flush()
}

// key is a lock as shown by inspect.
type key struct {
	state redlock.KeyStatus

	Key    string    `json:"key"`
	Status string    `json:"status"`
	Holder string    `json:"holder,omitempty"`  // the name of its client
	Digest string    `json:"digest,omitempty"`  // of its token
	Shared int       `json:"holders,omitempty"` // of a shared lock: the number
	Names  []string  `json:"names,omitempty"`   // of their clients
	TTL    float64   `json:"ttl_seconds"`
	Nodes  []keyNode `json:"nodes"`

	Name    string `json:"name,omitempty"`    // of a permit: the name of run -n
	Permit  int    `json:"permit,omitempty"`  // the permit's number
	Of      int    `json:"of,omitempty"`      // the number of permits, if known
	Permits []key  `json:"permits,omitempty"` // of a name: the permits in use
}

type keyNode struct {
	Node   string  `json:"node"`
	Holder string  `json:"holder,omitempty"`
	Digest string  `json:"digest,omitempty"`
	TTL    float64 `json:"ttl_seconds"`
	Shared int     `json:"holders,omitempty"`
	NoTTL  bool    `json:"no_ttl,omitempty"`
	Error  string  `json:"error,omitempty"`
}

func newKey(s redlock.KeyState) key {
	k := key{state: s.Status, Key: s.Key, Status: s.Status.String(), Holder: s.Holder, Digest: s.Digest, Shared: s.Holders, Names: s.Names, TTL: s.TTL.Seconds()}
	for _, n := range s.Nodes {
		shown := keyNode{Node: n.Addr, Holder: n.Holder, Digest: n.Digest, TTL: n.TTL.Seconds(), Shared: n.Holders, NoTTL: n.NoTTL}
		if n.Err != nil {
			shown.Error = n.Err.Error()
		}
		k.Nodes = append(k.Nodes, shown)
	}
	k.Name, k.Permit = permitOf(s.Key)
	if k.Permit > 0 {
		k.Holder, k.Of = amongOf(k.Holder)
	}
	return k
}

// headline describes a lock in one line.
func (k *key) headline() string {
	line := fmt.Sprintf("%q is %s", k.Key, k.Status)
	if k.Permit > 0 {
		line = fmt.Sprintf("%q, %s, is %s", k.Name, k.place(), k.Status)
	}
	if k.Shared > 0 {
		return line + fmt.Sprintf(" by %s, the longest for %v", k.holders(), span(k.TTL))
	}
	if k.Digest != "" {
		if k.Holder != "" {
			line += " by " + k.Holder
		}
		line += fmt.Sprintf(", token digest %s, for %v", k.Digest, span(k.TTL))
	}
	return line
}

// holders names the holder of a lock, or the holders of a shared one.
func (k *key) holders() string {
	if k.Shared == 0 {
		return cmp.Or(k.Holder, k.Digest)
	}
	text := counted(k.Shared)
	if len(k.Names) > 0 {
		text += " (" + strings.Join(k.Names, ", ") + ")"
	}
	return text
}

func counted(holders int) string {
	if holders == 1 {
		return "1 holder"
	}
	return fmt.Sprint(holders, " holders")
}

// unknownState returns the error of a key not shown by a quorum, with the answer of each node.
func unknownState(s redlock.KeyState) error {
	err := &redlock.QuorumError{Cause: redlock.ErrNoQuorum, Nodes: len(s.Nodes)}
	for _, n := range s.Nodes {
		if n.Err != nil {
			err.Failed = append(err.Failed, redlock.NodeError{Node: n.Node, Addr: n.Addr, Err: n.Err})
		}
	}
	return &exit{exitNoQuorum, fmt.Errorf("%q: %w", s.Key, err)}
}

// isHeld reports whether a key has a holder, or several.
func isHeld(s redlock.KeyStatus) bool {
	return s == redlock.KeyHeld || s == redlock.KeyEternal || s == redlock.KeyShared
}

// dash returns text, or a dash if it is empty.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// span writes a time for people: 1h0m0s, not 3.6e+03s.
func span(seconds float64) time.Duration {
	d := time.Duration(seconds * float64(time.Second))
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Microsecond)
}

// oneWord writes a key as one word on one line, quoted if it is not one.
func oneWord(key string) string {
	if strings.ContainsFunc(key, func(c rune) bool { return c == ' ' || !unicode.IsPrint(c) }) {
		return strconv.Quote(key)
	}
	return key
}

const aboutInspect = `
Inspect shows what each node has at a key: the name of the holder's client, a digest of its token
(the token itself could release the lock), and for how long. A shared lock has a number of holders.

  redlock inspect -nodes 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379 orders
  redlock inspect -json orders | jq .ttl_seconds
  redlock inspect -n 3 build              the permits of run -n 3 build

Without -n it shows which permits of the name are in use, and of how many, if their holders say so, as redlock run does.

Its exit status is 69 where too few nodes answer.`

// inspectOne inspects the only key of a command.
func inspectOne(ctx context.Context, client *redlock.Client, command string, keys []string) (redlock.KeyState, error) {
	if len(keys) != 1 {
		return redlock.KeyState{}, usage("%s wants one key", command)
	}
	state, err := client.Inspect(ctx, keys[0])
	return state, statusOf(err)
}

func inspect(ctx context.Context, env *environment, args []string) error {
	t, client, rest, err := newTool(env, "inspect [settings] key", aboutInspect, args)
	if err != nil {
		return err
	}
	defer client.Close()
	state, err := inspectOne(ctx, client, "inspect", rest)
	if err != nil {
		return err
	}
	k := newKey(state)
	states, err := permitsInUse(ctx, client, k.Key, t.permitsOf)
	if err != nil {
		return statusOf(err)
	}
	k.Permits = permits(states, t.permitsOf)
	err = t.print(k, func(w *tabwriter.Writer) {
		if k.showPermits(w); len(k.Permits) > 0 && state.Status == redlock.KeyFree {
			return
		}
		fmt.Fprintf(w, "%s\n\nNODE\tHOLDER\tDIGEST\tTTL\tERROR\n", k.headline())
		for _, n := range k.Nodes {
			ttl := "-"
			if n.NoTTL {
				ttl = "none"
			} else if n.Digest != "" || n.Shared > 0 {
				ttl = span(n.TTL).String()
			}
			holder := dash(n.Holder)
			if n.Shared > 0 {
				holder = counted(n.Shared)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", n.Node, holder, dash(n.Digest), ttl, n.Error)
		}
	})
	if err == nil && state.Status == redlock.KeyUnknown {
		return &exit{exitNoQuorum, nil}
	}
	return err
}

// showPermits prints the permits of a name in use.
func (k *key) showPermits(w *tabwriter.Writer) {
	if len(k.Permits) == 0 {
		return
	}
	fmt.Fprintf(w, "%q has %s\n\nPERMIT\tHOLDER\tDIGEST\tTTL\n", k.Key, inUse(k.Permits))
	for _, p := range k.Permits {
		fmt.Fprintf(w, "%d\t%s\t%s\t%v\n", p.Permit, dash(p.Holder), dash(p.Digest), span(p.TTL))
	}
	if isHeld(k.state) {
		fmt.Fprintf(w, "\nThe name is held without -n as well; that lock and the permits do not exclude each other.\n\n")
	}
}

const aboutHeld = `
Held reports which of the keys are held, one a line, for scripts. Without arguments it reads keys from
standard input. Its exit status is 0 if all are held, 1 if one is not, 69 without a quorum. A key with a * is a pattern: it
stands for what is held of all keys that match, 10,000 at most, found by SCAN at the nodes (which needs +scan).
A name with permits (run -n) is held where one is in use, and has a line for each of them.

  redlock held backup || echo no backup runs
  redlock held < keys.txt
  redlock held 'orders:*'                 what is held, by whom, and for how long`

// heldOf returns the held ones among the keys. For a key that is not held, and for all keys with -n, it returns the
// permits in use.
func (t *tool) heldOf(ctx context.Context, client *redlock.Client, keys []string) (all []key, err error) {
	for _, name := range keys {
		state, err := client.Inspect(ctx, name)
		switch {
		case err != nil:
			return nil, statusOf(err)
		case state.Status == redlock.KeyUnknown:
			return nil, unknownState(state)
		case isHeld(state.Status):
			all = append(all, newKey(state))
		}
		if _, number := permitOf(name); t.permitsOf > 0 || number == 0 && !isHeld(state.Status) {
			states, err := permitsInUse(ctx, client, name, t.permitsOf)
			if err != nil {
				return nil, statusOf(err)
			}
			all = append(all, permits(states, t.permitsOf)...)
		}
	}
	return all, nil
}

func held(ctx context.Context, env *environment, args []string) error {
	t, client, keys, err := newTool(env, "held [settings] [key…]", aboutHeld, args)
	if err != nil {
		return err
	}
	defer client.Close()
	if len(keys) == 0 {
		lines := bufio.NewScanner(env.in)
		for lines.Scan() {
			if line := strings.TrimSpace(lines.Text()); line != "" {
				keys = append(keys, line)
			}
		}
		if err := lines.Err(); err != nil {
			return usage("the keys cannot be read: %v", err)
		}
	}
	all, shown := true, []key{}
	for _, name := range keys {
		names := []string{name}
		if isPattern(name) {
			if names, err = t.scan(ctx, name); err != nil {
				return err
			}
			ofPermits, err := t.scan(ctx, "{"+name+"}:permit:*") // of names without a {tag}
			if err != nil {
				return err
			}
			names = append(names, ofPermits...)
		}
		states, err := t.heldOf(ctx, client, names)
		if err != nil {
			return err
		}
		shown, all = append(shown, states...), all && len(states) > 0
	}
	err = t.print(shown, func(w *tabwriter.Writer) {
		for _, k := range shown {
			holder := dash(k.Holder)
			if k.Shared > 0 {
				holder = k.holders()
			}
			if k.Permit > 0 {
				fmt.Fprintf(w, "%s\t%s\t%s\t%v\t%s\n", oneWord(k.Name), holder, dash(k.Digest), span(k.TTL), k.place())
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%v\n", oneWord(k.Key), holder, dash(k.Digest), span(k.TTL))
		}
	})
	if err == nil && !all {
		return &exit{exitFailed, nil}
	}
	return err
}

// node is a node as shown by nodes.
type node struct {
	Node       string  `json:"node"`
	In         string  `json:"in,omitempty"` // the lists with this node, during a change
	Up         bool    `json:"up"`
	Votes      bool    `json:"votes"`
	Quarantine float64 `json:"no_vote_for_seconds,omitempty"`
	Server     string  `json:"server,omitempty"`
	Dialect    string  `json:"releases_by,omitempty"`
	Trip       float64 `json:"round_trip_seconds"`
	Error      string  `json:"error,omitempty"`
	Volatile   string  `json:"not_persistent,omitempty"` // its settings, if they contradict its URL
	Serves     string  `json:"serves,omitempty"`
}

const aboutNodes = `
Nodes shows the state of each node, group by group: its connection, whether it may vote and for how long
it still may not, its version, and the round trip. Its exit status is 0 where a quorum may vote, with -all where all
nodes may, and else 69. With -next-nodes IN is "now", "next" or "both".

With -fenced a node that needs redlock fence init has no vote, and SERVES is the clients that it serves:
with these settings "now", with -next-nodes too "now+next", or with the next nodes alone "next".

  redlock nodes -nodes 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379
  redlock nodes -config /etc/redlock.conf -fenced -json
  redlock nodes -all -wait 5m               until a node that was restarted votes again`

// watching holds the settings of nodes.
type watching struct {
	all  bool
	wait time.Duration
}

func nodes(ctx context.Context, env *environment, args []string) error {
	t, client, rest, err := newTool(env, "nodes [settings]", aboutNodes, args)
	if err != nil {
		return err
	}
	defer client.Close()
	if len(rest) > 0 {
		return usage("nodes takes no argument %q", rest[0])
	}
	return t.showNodes(ctx, client)
}

// firstAnswers is how long showNodes waits for every node's first answer. It shows whether the node has a vote.
const firstAnswers = time.Second

// showNodes prints the state of the nodes. The status is 69 if too few may vote, or with -all if one may not. First it
// waits for their votes, for as long as -wait allows.
func (t *tool) showNodes(ctx context.Context, client *redlock.Client) error {
	ready := client.Ready
	if t.nodes.all {
		ready = client.ReadyAll
	}
	look, cancel := context.WithTimeout(ctx, firstAnswers) // for every node: whether it has a vote
	defer cancel()
	_ = client.ReadyAll(look)
	wait, stop := context.WithTimeout(ctx, t.nodes.wait)
	defer stop()
	notReady, states := ready(wait), client.Stats().Nodes
	var all []node
	for _, n := range states {
		shown := node{
			Node: n.Addr, In: t.in(n), Up: n.Up, Votes: n.NoVote == nil, Quarantine: n.NoVoteFor.Seconds(),
			Server: n.Server, Dialect: n.Dialect, Trip: n.RoundTrip.Seconds(), Serves: n.Serves, Volatile: n.Volatile,
		}
		if n.NoVote != nil {
			shown.Error = n.NoVote.Error()
		}
		all = append(all, shown)
	}
	err := t.print(all, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "NODE\tIN\tSTATE\tSERVES\tSERVER\tRELEASES BY\tROUND TRIP\tERROR\n")
		for _, n := range all {
			state, doubt := "votes", n.Error
			if n.Volatile != "" {
				doubt = strings.TrimPrefix(doubt+"; not persistent, as its URL says: "+n.Volatile, "; ")
			}
			switch {
			case !n.Up:
				state = "down"
			case !n.Votes && n.Quarantine > 0 && !(t.fenced && n.Serves == ""):
				state = fmt.Sprintf("no vote for %v", span(n.Quarantine))
			case !n.Votes:
				state = "no vote"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%v\t%s\n", n.Node, dash(n.In), state, dash(n.Serves), dash(n.Server), dash(n.Dialect), span(n.Trip), doubt)
		}
	})
	if err == nil && t.fenced && !slices.ContainsFunc(states, func(n redlock.Node) bool { return !n.Up || n.Serves != "" }) {
		fmt.Fprintln(t.env.err, "redlock: no node takes part in fencing, and waiting changes nothing: call redlock fence init once for new nodes, or redlock fence recover for nodes that have lost their tokens")
	}
	if err == nil && notReady != nil {
		return &exit{exitNoQuorum, nil}
	}
	return err
}

// in returns the lists of a node while there are two.
func (t *tool) in(n redlock.Node) string {
	switch {
	case !t.isChanging():
		return ""
	case n.InNodes && n.InNextNodes:
		return "both"
	case n.InNextNodes:
		return "next"
	}
	return "now"
}

// statusOf gives an error of the library its exit status.
func statusOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redlock.ErrTaken):
		return &exit{exitTaken, err}
	case errors.Is(err, redlock.ErrArgument), errors.Is(err, redlock.ErrConfig):
		return &exit{exitUsage, err}
	case errors.Is(err, redlock.ErrNoQuorum), errors.Is(err, redlock.ErrNoAnswer), errors.Is(err, redlock.ErrForgotten), errors.Is(err, redlock.ErrExpired),
		errors.Is(err, context.DeadlineExceeded): // no answer within -wait
		return &exit{exitNoQuorum, err}
	}
	return err
}
