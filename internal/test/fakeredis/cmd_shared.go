package fakeredis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// sharedKind is the kind of a shared lock. Its value is entry.ends.
const sharedKind = "zset"

// sharedCommands are the commands of the scripts of shared locks, for the access list. All are checked
// before, while Lua comes as far as it can.
var sharedCommands = map[int][]string{
	sharedAcquire: {"mget", "pttl", "time", "zadd", "zremrangebyscore", "zrevrange", "pexpireat"},
	sharedRelease: {"zrem", "zrevrange", "pexpireat"},
	sharedExtend:  {"time", "zscore", "zadd", "zrevrange", "pexpireat"},
	sharedLook:    {"time", "zrevrangebyscore", "zcount"},
}

// sharedCall is one call of a script of shared locks: see package command.
type sharedCall struct {
	*conn
	which      int
	keys, argv [][]byte
	said       []int64
	failed     bool // it has answered an error
}

// runShared runs such a script, behind the marker's where the server is fenced.
func (c *conn) runShared(which int, keys, argv [][]byte) {
	s := sharedCall{conn: c, which: which, keys: keys, argv: argv}
	if which == fencedSharedAcquire || which == fencedSharedExtend {
		f := fenceCall{conn: c, which: which, keys: keys, argv: argv}
		if !f.voting() {
			return
		}
		s.which, s.keys, s.argv = which-fencedSharedAcquire+sharedAcquire, keys[1:], argv[1:]
	}
	for _, name := range sharedCommands[s.which] {
		if c.srv.denied[name] {
			c.scriptError(which, c.srv.accessError(c.srv.dialect.noScriptAccess, name))
			return
		}
	}
	c.remember(keys)
	switch s.which {
	case sharedAcquire:
		s.acquire()
	case sharedExtend:
		s.each(true, s.extend)
	case sharedRelease:
		s.each(false, s.release)
	case sharedLook:
		s.look()
		return
	}
	if s.failed {
		return
	}
	if !slices.ContainsFunc(s.said, func(said int64) bool { return said != 1 }) {
		c.int(int64(len(s.said)))
		return
	}
	c.array(len(s.said))
	c.ints(s.said...)
}

// holder is a member of a call, with its time to live.
type holder struct {
	token string
	ttl   int64
}

// next takes the holders of the next key out of the arguments.
func (s *sharedCall) next(ttls bool) (all []holder) {
	n, _ := parseInt(s.argv[0])
	s.argv = s.argv[1:]
	for range n {
		h := holder{token: string(s.argv[0])}
		s.argv = s.argv[1:]
		if ttls {
			h.ttl, _ = parseInt(s.argv[0])
			s.argv = s.argv[1:]
		}
		all = append(all, h)
	}
	return all
}

// at is the set of a key, nil for a key that has none, and its entry.
func (s *sharedCall) at(key []byte) (e *entry, ends map[string]int64) {
	e = s.table().get(key, s.now)
	if e != nil {
		ends = e.ends
	}
	return e, ends
}

// store puts a set under a key, to expire with its last member. Without a member there is no key.
func (s *sharedCall) store(key []byte, e *entry, ends map[string]int64) {
	last := int64(0)
	for _, end := range ends {
		last = max(last, end)
	}
	if last <= s.now {
		s.table().del(key, s.now)
		return
	}
	s.table().put(e, key, nil, sharedKind, last, s.now)
	s.table().get(key, s.now).ends = ends
}

func (s *sharedCall) acquire() {
	restores := string(s.argv[0]) == "1"
	s.argv = s.argv[1:]
	prunes := s.srv.clock().Nanosecond()/1000%16 == 0
	type state struct{ taken, gated bool }
	var states []state
	for i := 0; i < len(s.keys); i += 2 {
		e, ends := s.at(s.keys[i])
		gate := s.table().get(s.keys[i+1], s.now)
		states = append(states, state{
			taken: e != nil && (e.kind == stringKind || e.expires == never || ends == nil),
			gated: gate != nil && gate.kind == stringKind && !restores,
		})
	}
	for i := 0; i < len(s.keys); i += 2 {
		all, st, said := s.next(true), states[i/2], int64(1)
		e, ends := s.at(s.keys[i])
		switch {
		case st.taken && (e.kind == stringKind || !st.gated):
			said = 0
		case st.gated:
			said = 2
		case s.srv.full:
			s.failed = true
			if e == nil {
				s.scriptError(s.which, errFull)
			} else {
				s.fail(errFull)
			}
			return
		default:
			if ends == nil {
				ends = map[string]int64{}
			}
			some := slices.ContainsFunc(all, func(h holder) bool { _, is := ends[h.token]; return is })
			if prunes || some {
				maps.DeleteFunc(ends, func(_ string, end int64) bool { return end <= s.now })
			}
			for _, h := range all {
				if _, is := ends[h.token]; !is {
					ends[h.token] = s.now + 1 + h.ttl
				}
			}
			s.store(s.keys[i], e, ends)
		}
		for range all {
			s.said = append(s.said, said)
		}
	}
}

// each calls f for the holders of each key.
func (s *sharedCall) each(ttls bool, f func(holder, map[string]int64) bool) {
	for _, key := range s.keys {
		e, ends := s.at(key)
		changed := false
		for _, h := range s.next(ttls) {
			before := ends[h.token]
			if f(h, ends) {
				s.said = append(s.said, 1)
			} else {
				s.said = append(s.said, 0)
			}
			changed = changed || ends[h.token] != before
		}
		if changed {
			s.store(key, e, ends)
		}
	}
}

func (s *sharedCall) extend(h holder, ends map[string]int64) bool {
	end := ends[h.token]
	if end <= s.now {
		return false
	}
	ends[h.token] = max(end, s.now+1+h.ttl)
	return true
}

func (s *sharedCall) release(h holder, ends map[string]int64) bool {
	_, was := ends[h.token]
	delete(ends, h.token)
	return was
}

func (s *sharedCall) look() {
	e, ends := s.at(s.keys[0])
	if e != nil && ends == nil {
		s.scriptError(s.which, errWrongType)
		return
	}
	all := slices.DeleteFunc(holdersOf(ends), func(m member) bool { return m.score <= float64(s.now) })
	slices.Reverse(all)
	most, _ := parseInt(s.argv[0])
	text := strconv.Itoa(len(all))
	size := 0
	for _, m := range all[:min(len(all), int(most))] {
		line := fmt.Sprintf("\n%.0f %s", m.score-float64(s.now), m.name)
		size += len(line)
		if size > 4000 {
			break
		}
		text += line
	}
	s.text(text)
}

// holdersOf are the members of a shared lock with their ends, in order.
func holdersOf(ends map[string]int64) (all []member) {
	for token, end := range ends {
		all = append(all, member{token, float64(end)})
	}
	slices.SortFunc(all, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.name, b.name))
	})
	return all
}

// Holders returns the holders of a shared lock, each with its time to live, and false
// where the key is none.
func (s *Server) Holders(key string) (left map[string]int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	e := s.keys.get([]byte(key), now)
	if e == nil || e.ends == nil {
		return nil, false
	}
	left = map[string]int64{}
	for token, end := range e.ends {
		if end > now {
			left[token] = end - now
		}
	}
	return left, true
}
