package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is a row of the table: a flag of some commands, a variable, and a line of the config file.
type setting struct {
	name      string
	of        string // the commands with this setting
	byDefault string // "" is the zero value
	help      string // with the kind of its value in backquotes
	// at is where its value goes: a *string, *bool, *int, *uint64, *time.Duration, *fs.FileMode or *nodeList.
	at        func(s *settings) any
	asFlag    bool // it cannot be a variable
	notInFile bool
}

// The commands that are clients of the nodes, and the tools among them.
const (
	forClients = "serve run " + forTools
	forTools   = "inspect held nodes break fence"
)

// table holds all settings. Flags, variables, lines of a file, help, completion and errors are derived from it.
var table = []setting{
	{name: "config", of: forClients, notInFile: true, help: "a `file` of \"name value\" lines, one for each setting", at: func(s *settings) any { return &s.config }},
	{name: "v", of: forClients, help: "log what happens to standard error", at: func(s *settings) any { return &s.verbose }},

	{name: "nodes", of: forClients, at: func(s *settings) any { return &s.now },
		help: "the masters: a `list` of host:port or URLs, with commas between. Several groups of masters, which share the keys,\n" +
			"have a semicolon between: 'a,b,c;d,e,f', in the order of all clients. Passwords only in REDLOCK_NODES or the -config file"},
	{name: "next-nodes", of: forClients, at: func(s *settings) any { return &s.next },
		help: "while nodes or groups change: the `list` after the change, as -nodes; see conn/OPERATORS.md"},
	{name: "tls-ca", of: forClients, help: "a `file` of the authorities that sign the certificates of rediss:// nodes; else those of the system", at: func(s *settings) any { return &s.tls.ca }},
	{name: "tls-cert", of: forClients, help: "the `file` of this client's certificate for rediss:// nodes", at: func(s *settings) any { return &s.tls.cert }},
	{name: "tls-key", of: forClients, help: "the `file` with the key of -tls-cert", at: func(s *settings) any { return &s.tls.key }},
	{name: "max-ttl", of: forClients, byDefault: "1m", at: func(s *settings) any { return &s.maxTTL },
		help: "the longest TTL that the nodes keep: a `duration`, the same in all commands, and Config.MaxTTL of Go clients"},
	{name: "next-max-ttl", of: forClients, help: "while -max-ttl of -fenced clients changes: the `duration` after the change; 0 is no change", at: func(s *settings) any { return &s.nextMaxTTL }},
	{name: "fenced", of: forClients, help: "locks have fencing tokens; the nodes need redlock fence init once", at: func(s *settings) any { return &s.fenced }},
	{name: "node-timeout", of: forClients, byDefault: "500ms", at: func(s *settings) any { return &s.nodeTimeout },
		help: "the `duration` that the nodes have to answer, and above 1s to connect: on a busy machine they are late; 0 is a twentieth of the TTL, at most 50ms"},
	{name: "name", of: forClients, help: "a `word` shown beside the locks of this process, such as its host", at: func(s *settings) any { return &s.name }},

	{name: "listen", of: "serve", byDefault: "127.0.0.1:6380", help: "the `address` to serve on, or the path of a socket", at: func(s *settings) any { return &s.serve.listen }},
	{name: "listen-cert", of: "serve", help: "the `file` of a certificate; serve by TLS", at: func(s *settings) any { return &s.serve.cert.cert }},
	{name: "listen-key", of: "serve", help: "the `file` with the key of -listen-cert", at: func(s *settings) any { return &s.serve.cert.key }},
	{name: "socket-mode", of: "serve", help: "the `mode` of the socket of -listen, such as 0660; 0 is that of the umask", at: func(s *settings) any { return &s.serve.socketMode }},
	{name: "users", of: "serve", help: "a `file` of users: name, password or sha256:hex, and an optional prefix of keys on each line; the prefix * is an operator's, who looks at all keys", at: func(s *settings) any { return &s.serve.users }},
	{name: "scripts", of: "serve", help: "a `file` of lock scripts in Lua, each behind a line \"-- alias SHA1\" of the script that it stands for", at: func(s *settings) any { return &s.serve.scripts }},
	{name: "metrics", of: "serve", help: "the `address` of /metrics, /ready and of a page for operators at /, such as :9121", at: func(s *settings) any { return &s.serve.metrics }},
	{name: "no-ttl", of: "serve", help: "grant locks without an expiry for this `duration` and keep them alive; 0 refuses them", at: func(s *settings) any { return &s.serve.noTTL }},
	{name: "drain", of: "serve", byDefault: "5s", help: "the `duration` that commands under way have at the end", at: func(s *settings) any { return &s.serve.drain }},
	{name: "lame-duck", of: "serve", help: "the `duration` from the signal to end until the listener is closed, while /ready says 503: balancers look elsewhere meanwhile", at: func(s *settings) any { return &s.serve.lameDuck }},
	{name: "clients", of: "serve", help: "the `number` of connections at most; 0 is 16384, or what the limit of open files leaves", at: func(s *settings) any { return &s.serve.clients }},
	{name: "force", of: "serve", help: "allow scripts that change the lock of any owner", at: func(s *settings) any { return &s.serve.force }},
	{name: "embedded", of: "serve", help: "bring three masters inside the process: for trying only", at: func(s *settings) any { return &s.serve.embedded }},

	{name: "ttl", of: "run", byDefault: "10s", help: "the TTL of the lock: a `duration`", at: func(s *settings) any { return &s.run.ttl }},
	{name: "wait", of: "run", byDefault: "0", help: "how long to wait for the lock: a `duration`, 0, or forever", at: func(s *settings) any { return &s.run.wait }},
	{name: "kill-after", of: "run", help: "the `duration` that the program has from SIGTERM to SIGKILL if the lock is lost; 0 is a quarter of the TTL, at most 5s", at: func(s *settings) any { return &s.run.killAfter }},
	{name: "wait-children", of: "run", help: "hold the lock until what the program has left in the background has ended, too", at: func(s *settings) any { return &s.run.waitChildren }},
	{name: "stopped", of: "run", help: "the `duration` for which a program that is stopped (^Z) keeps the lock, before it is ended; 0 is as long as it is stopped", at: func(s *settings) any { return &s.run.stopped }},
	{name: "at-least", of: "run", help: "keep the lock for this `duration` after its grant, also if the program ends before or is killed; up to -ttl longer", at: func(s *settings) any { return &s.run.atLeast }},
	{name: "shared", of: "run", asFlag: true, notInFile: true, help: "hold the lock beside others with -shared, and beside no other, as flock -s", at: func(s *settings) any { return &s.run.shared }},
	{name: "n", of: "run", byDefault: "1", asFlag: true, notInFile: true, help: "the `number` of holders at once, 1 to 64, the same for all", at: func(s *settings) any { return &s.run.permits }},
	{name: "q", of: "run", asFlag: true, notInFile: true, help: "say nothing where the lock is taken, or a node is down; errors are shown", at: func(s *settings) any { return &s.run.quiet }},
	{name: "E", of: "run", byDefault: "75", asFlag: true, notInFile: true, help: "the exit `status` where the lock is taken, also after -wait: 0 to 255", at: func(s *settings) any { return &s.run.statusTaken }},

	{name: "n", of: "inspect held break", byDefault: "0", asFlag: true, notInFile: true, help: "the permits of redlock run -n: this `number`; 0 looks for any", at: func(s *settings) any { return &s.permitsOf }},
	{name: "json", of: "inspect held nodes fence", help: "print JSON", at: func(s *settings) any { return &s.json }},
	{name: "all", of: "nodes", asFlag: true, notInFile: true, help: "want all nodes to vote, and not a quorum alone: for a rolling restart", at: func(s *settings) any { return &s.nodes.all }},
	{name: "wait", of: "nodes", asFlag: true, notInFile: true, help: "wait for that up to this `duration`", at: func(s *settings) any { return &s.nodes.wait }},
	{name: "yes", of: "break", asFlag: true, notInFile: true, help: "do not ask", at: func(s *settings) any { return &s.yes }},
	{name: "at-least", of: "fence", asFlag: true, notInFile: true, help: "recover: the largest `token` that the resources have seen", at: func(s *settings) any { return &s.fence.atLeast }},
	{name: "force", of: "fence", asFlag: true, notInFile: true, help: "recover: take -at-least, though it is far beyond all that nodes and the clock show", at: func(s *settings) any { return &s.fence.force }},
	{name: "lost", of: "fence", asFlag: true, notInFile: true, help: "recover: a `list` of nodes that never come back", at: func(s *settings) any { return &s.fence.lost }},
}

// isOf reports whether the setting belongs to a command.
func (row *setting) isOf(command string) bool {
	return slices.Contains(strings.Fields(row.of), command)
}

// variable is the name of the setting in the environment.
func (row *setting) variable() string {
	return "REDLOCK_" + strings.ToUpper(strings.ReplaceAll(row.name, "-", "_"))
}

// find returns the row of a name: the command's own, or else one of another command, or nil.
func find(name, command string) *setting {
	return findWhere(command, func(row *setting) bool { return row.name == name })
}

// findShared is find without the settings that are only flags.
func findShared(name, command string) *setting {
	return findWhere(command, func(row *setting) bool { return row.name == name && !row.asFlag })
}

func findWhere(command string, is func(*setting) bool) (row *setting) {
	for i := range table {
		if is(&table[i]) && (row == nil || table[i].isOf(command)) {
			row = &table[i]
		}
	}
	return row
}

// errSwitch refuses a value of a setting that is on or off.
var errSwitch = errors.New("want yes or no")

// set reads a value.
func (row *setting) set(s *settings, text string) (err error) {
	switch at := row.at(s).(type) {
	case *string:
		*at = text
	case *nodeList:
		at.set(text)
	case *bool:
		switch strings.ToLower(text) {
		case "yes", "on":
			text = "true"
		case "no", "off":
			text = "false"
		}
		if *at, err = strconv.ParseBool(text); err != nil {
			return errSwitch
		}
	case *time.Duration:
		if *at, err = time.ParseDuration(text); err != nil || *at < 0 {
			return errors.New("want a duration such as 30s, 1m30s or 500ms")
		}
	case *int:
		if *at, err = strconv.Atoi(text); err != nil || *at < 0 {
			return errors.New("want a whole number")
		}
	case *uint64:
		if *at, err = strconv.ParseUint(text, 10, 64); err != nil {
			return errors.New("want a whole number")
		}
	case *fs.FileMode:
		bits, err := strconv.ParseUint(text, 8, 32)
		*at = fs.FileMode(bits)
		if err != nil || *at&^fs.ModePerm != 0 {
			return errors.New("want the bits of a mode in octal, such as 0660")
		}
	}
	return nil
}

// isSwitch reports whether a flag of the setting needs no value.
func (row *setting) isSwitch(s *settings) bool {
	_, is := row.at(s).(*bool)
	return is
}

// explain shows the setting in the help of a command.
func (row *setting) explain(s *settings) string {
	kind, help := flag.UnquoteUsage(&flag.Flag{Usage: row.help})
	if row.isSwitch(s) {
		kind = ""
	}
	text := strings.TrimRight("  -"+row.name+" "+kind, " ") + "\n    \t" + strings.ReplaceAll(help, "\n", "\n    \t")
	if row.byDefault != "" && row.byDefault != "0" {
		text += " (default " + row.byDefault + ")"
	}
	return text + "\n"
}

// value is a setting as a flag.
type value struct {
	row *setting
	s   *settings
}

func (v value) String() string   { return "" }
func (v value) IsBoolFlag() bool { return v.row.isSwitch(v.s) }
func (v value) Set(text string) error {
	v.s.given[v.row.name] = true
	return v.row.set(v.s, text)
}

// unknown returns the error for a name that the command does not have.
func unknown(what, name, command string) error {
	row := find(name, command)
	switch {
	case row != nil && row.isOf(command):
		return fmt.Errorf("%s cannot be set here: give -%s as a flag", what, name)
	case row != nil:
		return fmt.Errorf("%s is no setting of %s, but of %s", what, command, strings.ReplaceAll(row.of, " ", ", "))
	}
	if near := nearest(name); near != "" {
		return fmt.Errorf("%s is no setting: did you mean %s?", what, near)
	}
	return fmt.Errorf("%s is no setting", what)
}

// nearest returns the setting with nearly the same name, or "".
func nearest(name string) (best string) {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	least := min(len(name)/3, 2) + 1
	for i := range table {
		if d := distance(name, table[i].name); d < least {
			best, least = table[i].name, d
		}
	}
	return best
}

// distance counts the letters added, left out, replaced, or swapped with the next, to turn a into b.
func distance(a, b string) int {
	last, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], last[j-1]+1)
			}
		}
		last, row, next = row, next, last
	}
	return row[len(b)]
}
