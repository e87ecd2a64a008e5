package conn

import (
	"strconv"
	"strings"
	"time"
)

// Server is what the server of a node has said about itself when it was connected: bounded and printable, but perhaps not
// true. An empty field was not shown.
type Server struct {
	Product string // "redis" or "valkey"
	Version string // as the server names it
	RunID   string // made anew by each start
	// History is the id of its replication history, Before that of the one before it was promoted from replica to master.
	History, Before string
	Uptime          time.Duration // whole seconds, by its own clock
	Keeps           bool          // it is declared persistent, and shows no setting against it: it forgets nothing in a restart
	Err             error         // its answer to INFO, if an error; none of its words if credentials were sent
}

// String is the product and its version.
func (s *Server) String() string { return strings.TrimSpace(s.Product + " " + s.Version) }

// Life names the time since the server has last started, or was promoted. It has no colon and no plus.
func (s *Server) Life() string {
	if s.Before == "" {
		return s.RunID
	}
	return s.RunID + "-" + s.History
}

// IsBefore reports whether the server is a Redis of an earlier major version.
func (s *Server) IsBefore(major int) bool {
	number, _, _ := strings.Cut(s.Version, ".")
	n, err := strconv.Atoi(number)
	return s.Product == "redis" && err == nil && n < major
}

// says is what the server of a connection says about itself.
func (n *node) says(id *identity) Server {
	s := id.Server
	s.Keeps = n.persistent && id.volatile == ""
	return s
}
