package waiting

import (
	"slices"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// survey asks nodes whether the keys of all desks are still there. For each key it asks a node that wakes none of the
// key's callers, with many keys in one question, at little cost to the node. A missing key may be free: its callers
// ask the quorum. A question with a missing key is divided, until the key is known.
//
// It is for clients with more desks than may ask the quorum each second.
type survey struct {
	lines *Lines
	turn  int // the nodes take turns
	asked []question
}

// question is one for a node, about the keys of desks.
type question struct {
	*engine.Query
	keys []string
}

// surveyKeys bounds the keys of a question.
const surveyKeys = 256

// begin asks about all desks, unless the last questions have no answer yet.
func (s *survey) begin(now clock.Instant) {
	l, usable := s.lines, s.lines.tracking.usable.Load()
	if len(s.asked) > 0 || usable == 0 || l.known.Load() <= maxAsks {
		return
	}
	s.turn++
	var keys [quorum.MaxNodes][]string
	l.each(func(d *desk) {
		if d.first != nil && d.isIdle() && d.held <= now {
			among := usable &^ d.Nodes()
			if among == 0 {
				among = usable
			}
			for range s.turn % among.Len() {
				among &= among - 1
			}
			node := among.Least()
			keys[node] = append(keys[node], d.key)
		}
	})
	for node := range keys {
		for some := range slices.Chunk(keys[node], surveyKeys) {
			s.ask(node, some)
		}
	}
}

func (s *survey) ask(node int, keys []string) {
	q := s.lines.cfg.Engine.Query(node, s.lines.cfg.QueryTimeout)
	q.Ring = s.lines.cfg.Ring
	q.Buf, q.Replies = command.AppendExists(q.Buf, keys)
	s.asked = append(s.asked, question{q, keys})
	s.lines.cfg.Engine.Ask(q)
}

// collect takes the answers of nodes.
func (s *survey) collect() {
	asked := s.asked
	s.asked = nil
	for _, q := range asked {
		select {
		case <-q.Answered():
		default:
			s.asked = append(s.asked, q)
			continue
		}
		if q.Err == nil && q.Said[0].Err == nil {
			s.answered(q.Node, q.keys, int(q.Said[0].Ints[0]))
		}
		q.Free()
	}
}

// answered notes how many of the keys a node has.
func (s *survey) answered(node int, keys []string, there int) {
	switch half := len(keys) / 2; {
	case there >= len(keys):
	case there <= 0 || half == 0:
		for _, key := range keys {
			s.lines.ask(key)
		}
	default:
		s.ask(node, keys[:half])
		s.ask(node, keys[half:])
	}
}

// ask has the callers for a key ask the quorum now.
func (l *Lines) ask(key string) {
	now := l.cfg.Clock.Now()
	l.at(key, func(d *desk) {
		if d.isIdle() && d.held <= now && d.Ask(now) {
			d.advance()
		}
	})
}
