package cluster

import (
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// Recorder records the commands received by a master, but for the initial probes of each
// connection.
type Recorder struct {
	mu    sync.Mutex
	calls []Call
}

// Call is a received command.
type Call struct {
	Conn int64 // the connection, by number
	Args []string
	At   time.Time
}

func record(s *fakeredis.Server) *Recorder {
	r := &Recorder{}
	s.OnCommand(func(conn int64, args []string) {
		if slices.Contains(args, "redlock:probe") {
			return // of a handshake
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = append(r.calls, Call{conn, args, time.Now()})
	})
	return r
}

// All returns all calls, oldest first.
func (r *Recorder) All() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Calls returns the calls of a command with a word in it, oldest first.
func (r *Recorder) Calls(name, word string) (found []Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if c.Args[0] == name && slices.Contains(c.Args, word) {
			found = append(found, c)
		}
	}
	return found
}
