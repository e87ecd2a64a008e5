// Package refusal interprets the error replies of servers: their meaning for the connection, and
// for the command. It reads text and keeps none of it.
package refusal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redlock-go/redlock/resp"
)

// The causes of refusals, for errors.Is. An error of this package wraps at most one.
var (
	// These five are documented in package conn. ErrAuth hides the server's text: servers may repeat
	// what they were sent.
	ErrAuth       = errors.New("server refused the credentials")
	ErrNotMaster  = errors.New("conn: node is a replica: name the master in its place")
	ErrCluster    = errors.New("conn: node is part of a cluster: name masters that are independent of each other")
	ErrForbidden  = errors.New("conn: forbidden by the server's access list")
	ErrUnscripted = errors.New("conn: node cannot run scripts")

	// ErrImpostor and ErrNoLogin are kinds of ErrAuth.
	ErrImpostor = fmt.Errorf("%w: it wants none, so it may be another server than the one meant", ErrAuth)
	ErrNoLogin  = fmt.Errorf("%w: it wants some, and none are configured (NOAUTH)", ErrAuth)

	// ErrProtected and ErrCrowded come before any command was read; then the server closes the connection.
	ErrProtected = errors.New("server is in protected mode: it takes no clients from other hosts without a password")
	ErrCrowded   = errors.New("server takes no more clients")

	// ErrUnfit is an answer of a type foreign to the command. Replies after it would be as wrong.
	ErrUnfit = errors.New("server's reply does not fit the command")
)

// Lacks is the refusal of an indispensable command.
func Lacks(command string) error { return fmt.Errorf("%w: the command %s", ErrForbidden, command) }

// fatal lists the error replies after which the connection is of no use. Any other code is the failure of one command:
// BUSY, LOADING, MISCONF, NOREPLICAS, NOSCRIPT, OOM, WRONGTYPE, and codes of later servers.
var fatal = []struct {
	code   string
	begins string // the text after the code; empty means anything
	cause  error  // nil: it has no name here
}{
	{"NOAUTH", "", ErrAuth},
	{"WRONGPASS", "", ErrAuth},
	{"ERR", "AUTH <password> called without any password", ErrImpostor},
	{"ERR", "Client sent AUTH, but no password is set", ErrImpostor}, // up to Redis 5
	{"ERR", "invalid password", ErrAuth},                             // up to Redis 5

	{"READONLY", "", ErrNotMaster},
	{"MASTERDOWN", "", ErrNotMaster},

	// Never followed: redirects would collapse the votes onto one master.
	{"MOVED", "", ErrCluster},
	{"ASK", "", ErrCluster},
	{"CROSSSLOT", "", ErrCluster},
	{"CLUSTERDOWN", "", ErrCluster},
	{"TRYAGAIN", "", ErrCluster},

	{"DENIED", "", ErrProtected},
	{"ERR", "max number of clients reached", ErrCrowded},
	{"ERR", "Protocol error", nil},
	{"EXECABORT", "", nil},
}

// Refusal is the meaning of an error reply. The zero value stands for any other reply.
type Refusal struct {
	// Err is, or wraps, a [*ServerError]. It also wraps the cause, such as [ErrAuth] or
	// [ErrForbidden], where that has a name. The text is bounded and printable. For a missing
	// permission it names the command, never an argument or the user.
	Err    error
	Code   string // such as READONLY or ERR, also of an error reply wrapped by a script
	Fatal  bool   // the connection must be closed
	Later  bool   // it is about a passing state of the server, not about a command or a key
	Lacks  bool   // the access list does not allow a command
	OfKey  bool   // the access list allows the command, but not on this key
	OfType bool   // the key has a value of a type foreign to the command
	// Unscripted: as an answer to a script command, it shows a server without the command, without the language, or
	// without a command used by the script.
	Unscripted bool
}

// Read interprets a reply. It keeps nothing of it, and allocates the error.
func Read(v *resp.Value) (r Refusal) {
	if !v.IsError() {
		return r
	}
	reply := newServerError(v.Bytes)
	r.Err, r.Code = reply, reply.Code
	if what := forbidden(reply); what != "" {
		r.OfKey, r.Lacks = what == aKey, what != aKey
		r.Err = &caused{ErrForbidden, &ServerError{Code: "NOPERM", Message: "NOPERM for " + what}}
		return r
	}
	switch reply.Code {
	case "OOM", "MISCONF", "BUSY", "LOADING", "NOREPLICAS":
		r.Later = true
	case "WRONGTYPE":
		r.OfType = true
	case "ERR":
		r.OfType = strings.Contains(reply.Message, "Key should be of string type") // DELEX of Redis 8.4
		lower := strings.ToLower(reply.Message)
		r.Unscripted = strings.Contains(lower, "unknown command") || strings.Contains(lower, "unknown redis command") ||
			strings.Contains(lower, "scripting engine")
	}
	rest, _ := strings.CutPrefix(reply.Message, reply.Code+" ")
	for _, row := range fatal {
		if row.code == reply.Code && strings.HasPrefix(rest, row.begins) {
			r.Fatal = true
			if row.cause != nil {
				r.Err = &caused{row.cause, reply}
			}
			break
		}
	}
	return r
}

// Stays reports whether the command was wrong: the next answer will be the same. Every ERR means so, unless it refuses
// the client. Unknown codes do not.
func (r *Refusal) Stays() bool { return r.Code == "ERR" && !errors.Is(r.Err, ErrCrowded) }

// Fatality returns the error of a refusal that ends the connection, and nil for others.
func (r Refusal) Fatality() error {
	if r.Fatal {
		return r.Err
	}
	return nil
}

// caused is an error reply with a named cause.
type caused struct {
	cause error
	reply *ServerError
}

func (e *caused) Error() string   { return e.cause.Error() + ": " + e.reply.Message }
func (e *caused) Unwrap() []error { return []error{e.cause, e.reply} }

// Texts of servers before the name of a forbidden command, and inside a script, where the code is not NOPERM.
const (
	noCommand    = "no permissions to run the '"
	scriptDenied = "ACL failure in script: "              // from Redis 7.2 on, and Valkey
	scriptUser   = "The user executing the script can't " // up to Redis 7.0
	aKey         = "a key"                                // in place of its name: an argument
)

// forbidden describes the refusal of an access list, or is "" if an error reply is about something else.
func forbidden(reply *ServerError) string {
	text := reply.Message
	inScript := reply.Code == "ERR" && (strings.Contains(text, scriptDenied) || strings.Contains(text, scriptUser))
	if reply.Code != "NOPERM" && !inScript {
		return ""
	}
	if _, after, found := strings.Cut(text, noCommand); found {
		if name, _, closed := strings.Cut(after, "'"); closed && IsWord(strings.ReplaceAll(name, "|", "-")) {
			return "the command " + name
		}
	}
	switch {
	case inScript && strings.Contains(text, "run this command"), strings.Contains(text, noCommand):
		return "a command"
	case strings.Contains(text, " key"):
		return aKey
	}
	return "something that it does not name"
}

// IsWord reports whether s is short and of letters, digits, dots, dashes and underscores, like
// versions, names and ids.
func IsWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 64
}

// Redact removes the server's text from an error: a server may repeat earlier input, such as a
// password. A known cause or code is left.
func Redact(err error) error {
	var named *caused
	if errors.As(err, &named) {
		return named.cause
	}
	var reply *ServerError
	if !errors.As(err, &reply) {
		return err
	}
	switch reply.Code {
	case "BUSY", "ERR", "EXECABORT", "LOADING", "MISCONF", "NOREPLICAS", "NOSCRIPT", "OOM", "WRONGTYPE":
		return fmt.Errorf("server refuses the handshake: %s", reply.Code)
	}
	return errors.New("server refuses the handshake")
}
