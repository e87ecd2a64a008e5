package quarantine

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// Cause is the reason why a node may have forgotten locks.
type Cause uint8

const (
	None      Cause = iota
	Restarted       // its process has started again
	Promoted        // it was a replica, with the data of another server
	Unmet           // this is the first meeting, and it may have started shortly before
)

// Bounds are the longest lives of a call's locks, drift included.
type Bounds struct {
	All  time.Duration // for any client; 0: not known, and a node is trusted at the first meeting
	Used time.Duration // for this client so far, without All
}

// Memory is a client's knowledge of a node's memory. The zero value belongs to a node never met.
type Memory struct {
	Cause   Cause  // of the last loss, kept after its end
	last    Server // of the last connection
	met     bool
	replica bool          // it has been a replica since
	since   clock.Instant // it may have forgotten locks granted before
	until   clock.Instant // its vote counts in no call before
}

// SawReplica notes that the node was a replica.
func (m *Memory) SawReplica() { m.replica = true }

// Doubt is the reason why a node whose server says s now may have forgotten locks since its last connection, or None.
func (m *Memory) Doubt(s Server, b Bounds) Cause {
	switch promotion := s.promotion(); {
	case m.replica:
		return Promoted
	case !m.met && b.All == 0:
		return None
	case m.met && m.last.Run != s.Run && !s.Keeps:
		return Restarted
	case promotion != "" && promotion != m.last.promotion(): // at the first meeting: nothing shows how long ago
		return Promoted
	case !m.met && !s.Keeps:
		return Unmet
	}
	return None
}

// Meets takes the word of the server of a new connection.
func (m *Memory) Meets(s Server, b Bounds, now clock.Instant) {
	if cause := m.Doubt(s, b); cause != None {
		m.Cause, m.since = cause, now
		if cause == Unmet {
			// Servers subtract whole seconds, so the uptime may be too long by almost a second.
			m.since = now.Add(-max(0, s.Uptime-time.Second))
		}
		m.until = m.since.Add(max(b.All, b.Used))
	}
	m.last, m.met, m.replica = s, true, false
}

// Since is the last instant at which the node may have forgotten locks, if there is a Cause.
func (m *Memory) Since() clock.Instant { return m.since }

// Due is the instant from which the node's vote counts in a call whose lock may live for so long, drift included.
func (m *Memory) Due(life time.Duration) clock.Instant {
	if m.Cause == None {
		return 0
	}
	return max(m.until, m.since.Add(life))
}
