package fencing

import (
	"slices"
	"strings"
)

// Phase is the phase of a node between forgetting and voting.
type Phase uint8

const (
	Absent      Phase = iota // it has forgotten
	Provisional              // it has a nonce, and no vote
	Voting                   // it has a vote
)

// Me is a client and a node, as the client sees both on one connection.
type Me struct {
	Fleet string // the client's [Configuration], or its two while a change is under way: "now+next"
	Run   string // the server's run_id
}

// Marker shows what a node's tokens are worth. It is the member of the sorted set with the score -1.
//
// A marker with a vote names one configuration or two, and the node serves the clients of all it names: the quorum rule
// of each binds them. So while the marker of a node of two configurations names one of them, the node serves the
// clients of this one alone, and of both. Once the marker names both, it serves only clients of both.
type Marker struct {
	Phase Phase
	Me    Me     // for a provisional marker, only the run
	Nonce string // for a provisional marker, and for a sealed one
}

// String is the member's name: "active:<fleet>:<run>", "active:<now>+<next>:<run>:<nonce>" once it was sealed, or
// "prov:<run>:<nonce>".
func (m Marker) String() string {
	switch {
	case m.Phase == Absent:
		return ""
	case m.Phase == Provisional:
		return "prov:" + m.Me.Run + ":" + m.Nonce
	}
	return strings.TrimSuffix("active:"+m.Me.Fleet+":"+m.Me.Run+":"+m.Nonce, ":")
}

// ParseMarker reads String's text. Any other text is an absent marker.
func ParseMarker(text string) (m Marker) {
	parts := strings.SplitN(text, ":", 4)
	switch {
	case parts[0] == "active" && len(parts) >= 3:
		m = Marker{Phase: Voting, Me: Me{Fleet: parts[1], Run: parts[2]}}
		if len(parts) == 4 {
			m.Nonce = parts[3]
		}
	case parts[0] == "prov" && len(parts) >= 3:
		m = Marker{Phase: Provisional, Me: Me{Run: parts[1]}, Nonce: strings.Join(parts[2:], ":")}
	}
	return m
}

// Serves reports whether a node with the marker has a vote for a client: it has all configurations named by the marker.
func (m *Marker) Serves(me Me) bool {
	if m.Phase != Voting || m.Me.Run != me.Run {
		return false
	}
	own := strings.Split(me.Fleet, "+")
	for name := range strings.SplitSeq(m.Me.Fleet, "+") {
		if !slices.Contains(own, name) {
			return false
		}
	}
	return true
}

// NonceFleet returns the fleet of the nonce's clients: the part before its slash.
func NonceFleet(nonce string) string {
	return nonce[:max(strings.IndexByte(nonce, '/'), 0)]
}

// OfTwo reports whether a nonce is from a client of two configurations.
func OfTwo(nonce string) bool { return strings.Contains(NonceFleet(nonce), "+") }
