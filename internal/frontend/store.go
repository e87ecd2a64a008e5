package frontend

import (
	"sync"

	"github.com/redlock-go/redlock/internal/luascript"
)

// Scripts are scripts that are known by their hash.
type Scripts []*luascript.Script

// ReadScripts reads a list of scripts, in the form of package luascript.
func ReadScripts(text []byte) (Scripts, error) { return luascript.ParseList(text) }

// maxScripts bounds the texts that are kept.
const maxScripts = 1024

// scripts is the scripts that clients have sent, by SHA1. A client that has called a script may never
// send its text again on that connection, so such a script stays; of the others the one that was
// called least recently makes room.
type scripts struct {
	mu    sync.Mutex
	known map[string]*stored
	calls uint64
}

// stored is one script.
type stored struct {
	*luascript.Script
	listed bool
	users  int    // connections that have called it
	last   uint64 // call
}

func newScripts(listed Scripts) *scripts {
	s := &scripts{known: map[string]*stored{}}
	for _, script := range listed {
		s.known[script.Name()] = &stored{Script: script, listed: true}
	}
	return s
}

const errScripts = refusal("this server keeps no more scripts: too many are in use by open connections")

// add parses a text and keeps it.
func (s *scripts) add(text string) (*stored, error) {
	name := luascript.Name([]byte(text))
	if script := s.get(name); script != nil {
		return script, nil
	}
	parsed, err := luascript.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxScripts && !s.evict() {
		return nil, errScripts
	}
	script := &stored{Script: parsed, last: s.calls}
	s.known[name] = script
	return script, nil
}

// evict makes room, and reports whether it has. s.mu is held.
func (s *scripts) evict() bool {
	oldest := ""
	for name, script := range s.known {
		if script.users == 0 && !script.listed && (oldest == "" || script.last < s.known[oldest].last) {
			oldest = name
		}
	}
	delete(s.known, oldest)
	return oldest != ""
}

// get returns a script, or nil.
func (s *scripts) get(name string) *stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[name]
}

// use notes that a connection calls a script, and returns the scripts that it has called.
func (s *scripts) use(used map[string]*stored, name string, script *stored) map[string]*stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	script.last = s.calls
	if used[name] == nil {
		if used == nil {
			used = map[string]*stored{}
		}
		used[name] = script
		script.users++
	}
	return used
}

// forget takes back what a connection has used.
func (s *scripts) forget(used map[string]*stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, script := range used {
		script.users--
	}
}
