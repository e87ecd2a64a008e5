package fencing

// Phase is where a node is between forgetting and voting.
type Phase uint8

// The phases.
const (
	Absent      Phase = iota // it has forgotten
	Provisional              // it has a nonce, and no vote
	Voting                   // it has a vote
)

// Me is the node as the client sees it on one connection.
type Me struct {
	Fleet string // digest of members, quorum and longest TTL; without a colon
	Run   string // the server's run_id
}

// Marker is what a node's tokens are worth. It is the member of the sorted set with the
// score -1.
type Marker struct {
	Phase Phase
	Me    Me
	Nonce string // of a provisional marker
}

// String is the member's name: "active:<fleet>:<run>" or "prov:<fleet>:<run>:<nonce>".
func (m Marker) String() string {
	switch m.Phase {
	case Voting:
		return "active:" + m.Me.Fleet + ":" + m.Me.Run
	case Provisional:
		return "prov:" + m.Me.Fleet + ":" + m.Me.Run + ":" + m.Nonce
	}
	return ""
}

// read is the answer of the marker to a client: Active, Amnesia with the nonce of this
// life, or Foreign. The marker of an earlier run counts as absent: the set came back from
// a file, and the tokens since are missing.
func (m *Marker) read(me Me) Answer {
	switch {
	case m.Phase == Absent:
	case m.Me.Fleet != me.Fleet:
		return Answer{Code: Foreign, Text: m.String()}
	case m.Me.Run != me.Run:
	case m.Phase == Voting:
		return Answer{Code: Active}
	default:
		return Answer{Code: Amnesia, Text: m.Nonce}
	}
	return Answer{Code: Amnesia}
}
