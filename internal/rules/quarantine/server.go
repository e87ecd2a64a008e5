package quarantine

import "time"

// Server is a server's word about itself.
type Server struct {
	Run     string        // run_id, made anew by each start; "" if not shown
	History string        // the id of its replication history; "" if not shown
	Before  string        // the id of the history before, if it was promoted from replica to master
	Uptime  time.Duration // in whole seconds; 0 if not shown
	Keeps   bool          // it forgets nothing when it starts again
}

// promotion names the last promotion of the server to master, or is "". Each gives its history a new id.
func (s *Server) promotion() string {
	if s.Before == "" {
		return ""
	}
	return s.History
}
