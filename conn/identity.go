package conn

import "time"

// identity is what a server told of itself in the handshake of one connection.
type identity struct {
	runID   string        // made anew by every process start; "" if it does not tell
	product string        // "redis" or "valkey"
	version string        // as the server names it
	uptime  time.Duration // by its own clock; 0 if it does not tell
	policy  string        // what it evicts when memory is short; "" if it does not tell
	dialect Dialect
}
