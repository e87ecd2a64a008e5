package frontend

import (
	"slices"
	"sync"

	"github.com/redlock-go/redlock/internal/luascript"
)

// Scripts are scripts that are known by their hash.
type Scripts []*luascript.Script

// ReadScripts reads lock scripts that stand for others, in the form of package luascript.
func ReadScripts(text []byte) (Scripts, error) { return luascript.ParseAliases(text) }

// maxScripts and maxTexts bound the scripts that are kept, and the bytes of their texts: a parsed
// script takes up to a hundred times its text. maxUsed bounds those that stay because one connection
// has called them: some clients write numbers into each text.
const (
	maxScripts = 1024
	maxTexts   = 1 << 20
	maxUsed    = 64
)

// scripts is the scripts that clients have sent, by SHA1. A client that has called a script may never
// send its text again on that connection, so such a script stays; of the others the one that was
// called least recently makes room.
type scripts struct {
	mu    sync.Mutex
	known map[string]*stored
	texts int // bytes of those that are not listed
	calls uint64
}

// stored is one script.
type stored struct {
	*luascript.Script
	size   int // of the text
	listed bool
	isKept bool
	users  int    // connections that have called it
	last   uint64 // call
}

func newScripts(listed Scripts) *scripts {
	s := &scripts{known: map[string]*stored{}}
	for _, script := range append(luascript.Known(), listed...) { // a user's entry replaces ours
		s.known[script.Name()] = &stored{Script: script, listed: true, isKept: true}
	}
	return s
}

const errScripts = refusal("this server keeps no more scripts: too many are in use by open connections")

// add parses a text, and keeps it unless there is no room.
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
	if script := s.known[name]; script != nil {
		return script, nil // another connection was first
	}
	script := &stored{Script: parsed, size: len(text), last: s.calls}
	for len(s.known) >= maxScripts || s.texts+len(text) > maxTexts {
		if !s.evict() {
			return script, nil
		}
	}
	script.isKept = true
	s.texts += len(text)
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
	if oldest == "" {
		return false
	}
	s.texts -= s.known[oldest].size
	s.known[oldest].isKept = false
	delete(s.known, oldest)
	return true
}

// get returns a script, or nil.
func (s *scripts) get(name string) *stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[name]
}

// use notes that a connection calls a script. used is the scripts that it has called.
func (s *scripts) use(used []*stored, script *stored) []*stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	script.last = s.calls
	if script.isKept && len(used) < maxUsed && !slices.Contains(used, script) {
		script.users++
		used = append(used, script)
	}
	return used
}

// forget takes back what a connection has used.
func (s *scripts) forget(used []*stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, script := range used {
		script.users--
	}
}
