// Package history has what happened in a run: each call of each worker, the faults, and what the masters held. A process
// writes its records to a file while it runs, and the checker reads all of them.
package history

import (
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock"
)

// The libraries. Those of the hand are a Redlock of a few lines, whole or with one of five mistakes.
const (
	Ours       = "redlock"
	Redsync    = "redsync"
	Front      = "front" // a bare client of redlock serve
	ByHand     = "by-hand"
	NoToken    = "by-hand-no-token"    // releases any value at the key
	NoValidity = "by-hand-no-validity" // holds for as long as it likes
	NoElapsed  = "by-hand-no-elapsed"  // counts the validity from the answers on
	NoDrift    = "by-hand-no-drift"    // takes its clock for that of the nodes
	Half       = "by-hand-half"        // is content with half of the nodes
)

// Setup is what a run is. The seed fixes the faults, their times, and what each worker asks for; packets and the load of the
// machine are not repeated.
type Setup struct {
	Name    string
	Seed    uint64
	Mix     string // of faults: a name, or kinds separated by commas
	Library string
	Server  string // product and version
	Commit  string // of this library
	Version string // of the other

	Faults, Calm time.Duration // how long faults are injected; how long it is calm behind them
	Scale        float64       // the faults last so many times as long
	Clients      int
	Fenced       bool
	Groups       bool // a second group of masters shares the keys
	Change       bool // the fifth master is replaced by a sixth meanwhile; with Groups, the second is added meanwhile
	Portable     bool
	Serve        bool // redlock serve is a host, with a client in each process
	Compared     bool // only what each library can do
	MaxTTL       time.Duration

	Start, Heal, Stop Time // the faults are over by Heal, the workers end at Stop
}

// Results of a call. A call that gave up waiting has GaveUp before the result of its last attempt.
const (
	OK       = "ok"
	Taken    = "taken"
	NoQuorum = "no quorum"
	NotHeld  = "not held"
	NoAnswer = "no answer"
	Deadline = "deadline"
	GaveUp   = "gave up: "
	Nothing  = "no attempt"
)

// Call is a call that asked for a lock, and what its caller did with the lock.
type Call struct {
	Client                    int
	Worker, API, Library      string
	Keys                      []string
	Shared                    bool // others may have the keys too, if they ask so
	TTL                       time.Duration
	Options                   redlock.Options `json:",omitzero"` // of Client.With
	Asked, Deadline, Answered Time
	Result, Text              string
	Attempts                  int  // of a call that gave up
	Step                      int  // of the process's clients: in a change one follows another
	Unanswered                bool // a command of a bare client: its key may be locked for it

	// Of a granted call.
	Got    []string
	Fence  uint64
	Digest string // of its token, where the worker knows it
	// The claim: from the first look at the lock, which showed validity, to the call of its release, or to the end of the validity
	// that the last look showed. A process that is stopped does not look: what it was told before is no less a promise.
	// From is 0 if no look showed any.
	From, Until Time
	Over        string // why it ended, where it was not by a release
	Released    Time   // the call of its release
	Gone        Time   // the answer
	Release     string // the result
	Async       bool   // it was not waited for
	Left        time.Duration
	Writes      []Write
}

// IsPrivate reports whether one worker alone ever asks for a key.
func IsPrivate(key string) bool {
	kind, _, _ := strings.Cut(key, "-")
	return slices.Contains([]string{"own", "once", "probe"}, kind)
}

// Write is one to the register, which refuses tokens below the largest it has seen.
type Write struct {
	At       Time
	Accepted bool
	Valid    bool // the lock was held before it and after it
}

// Extend is an extension.
type Extend struct {
	Client              int
	Worker, Key, Result string
	Called, Answered    Time
	Before              time.Duration // validity
}

// Break is a release of another's lock, by an operator.
type Break struct {
	Client           int
	Key, Digest      string
	Holder           string // its name, as Inspect shows it
	Called, Answered Time
	Result           string
}

// Node is what a hook said of a node.
type Node struct {
	Client int
	At     Time
	Up     bool
	Addr   string
}

// Pause is a time for which a process, or one of its threads that was ready, did not run.
type Pause struct {
	Client   int // 0: the wire
	From, To Time
	Waited   time.Duration
	Thread   bool
}

// End is that of a process.
type End struct {
	Client        int
	Shutdown      string // the result
	Took          time.Duration
	Before, After int // goroutines: before New, after Shutdown. 0: the process goes on with another client
	Log           int // lines, counted by Read
	LogOfNode     int // the most that name one node
}

// Fault is one that was injected.
type Fault struct {
	Kind, Scope, Detail string
	Hit                 []int // clients
	Masters             []int
	Alone               bool
	From, To            Time
}

// Seen is a key at a master.
type Seen struct {
	At     Time
	Master int
	Key    string
	TTL    time.Duration // below 0: none
	Last   bool          // after all clients have ended
}

// Dials are those of a client in a second.
type Dials struct {
	At             Time
	Client, Master int
	Count          int64
}

// History is all of a run.
type History struct {
	Setup
	Calls   []*Call // by Asked
	Extends []*Extend
	Breaks  []*Break
	Nodes   []*Node
	Pauses  []*Pause
	Ends    []*End
	Faults  []*Fault
	Seen    []*Seen
	Dials   []*Dials
}
