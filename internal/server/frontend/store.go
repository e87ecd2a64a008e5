package frontend

import (
	"sync"

	"github.com/redlock-go/redlock/internal/server/luascript"
)

// Scripts are scripts known by their hash.
type Scripts []*luascript.Script

// ReadScripts reads lock scripts that stand for others, in the form of package luascript.
func ReadScripts(text []byte) (Scripts, error) { return luascript.ParseAliases(text) }

// maxScripts and maxTexts bound the stored scripts, and the bytes of their texts: a parsed script
// takes up to a hundred times its text.
const (
	maxScripts = 1024
	maxTexts   = 1 << 20
)

// scripts holds the scripts sent by clients, by SHA1. The least recently called one makes room for others. Its client
// gets NOSCRIPT, as from a restarted Redis, and sends the text.
type scripts struct {
	mu     sync.Mutex
	listed map[string]*luascript.Script
	known  map[string]*stored
	texts  int // bytes of these
	calls  uint64
}

type stored struct {
	*luascript.Script
	size int    // of the text
	last uint64 // call
}

func newScripts(listed Scripts) *scripts {
	s := &scripts{known: map[string]*stored{}}
	s.list(listed)
	return s
}

// list puts scripts in place of those listed before.
func (s *scripts) list(listed Scripts) {
	all := map[string]*luascript.Script{}
	for _, script := range append(luascript.Known(), listed...) { // a user's entry replaces ours
		all[script.Name] = script
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = all
}

// add parses a text, and keeps it.
func (s *scripts) add(text string) (*luascript.Script, error) {
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
	for len(s.known) >= maxScripts || s.texts+len(text) > maxTexts {
		s.evict()
	}
	if s.known[name] == nil { // else another connection was first
		s.calls++
		s.known[name] = &stored{Script: parsed, size: len(text), last: s.calls}
		s.texts += len(text)
	}
	return parsed, nil
}

// evict makes room. s.mu is held.
func (s *scripts) evict() {
	oldest := ""
	for name, script := range s.known {
		if oldest == "" || script.last < s.known[oldest].last {
			oldest = name
		}
	}
	s.texts -= s.known[oldest].size
	delete(s.known, oldest)
}

// get returns a script for a call, or nil.
func (s *scripts) get(name string) *luascript.Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	script := s.known[name]
	if script == nil {
		return s.listed[name]
	}
	s.calls++
	script.last = s.calls
	return script.Script
}
