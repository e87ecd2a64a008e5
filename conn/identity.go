package conn

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/wire/refusal"
	"github.com/redlock-go/redlock/resp"
)

// identity is the server's description of itself in one handshake. It is bounded and printable, but perhaps not true.
type identity struct {
	runID   string        // made anew by every process start; "" if not reported
	history string        // the id of its replication history; likewise
	before  string        // that of the one before it was promoted to master; likewise
	product string        // "redis" or "valkey"
	version string        // as the server names it
	uptime  time.Duration // by its own clock; 0 if not reported
	policy  string        // what it evicts when memory is short; "" if not reported
	// volatile is the settings that show that it forgets in a restart, of a node declared persistent.
	volatile string
	refused  error // its answer to INFO, if an error; none of its words if credentials were sent
	looks    bool  // it may be asked for its role again: see look.go
	tracks   bool  // it pushes that all its keys are gone; likewise
	form     Form
	resp3    bool          // the connection speaks RESP3
	trip     time.Duration // from the commands to the first answer
}

// noEviction is the only policy to keep each key until its time.
const noEviction = "noeviction"

// policies are the known ones. Other values are not shown.
var policies = []string{
	noEviction, "allkeys-lru", "allkeys-lfu", "allkeys-lrm", "allkeys-random",
	"volatile-lru", "volatile-lfu", "volatile-lrm", "volatile-random", "volatile-ttl",
}

// note takes in a field of HELLO or INFO. An error is the reason why the server must not be a node. A server without a
// role in its answer is accepted; one with an unknown role is not.
func (id *identity) note(name, value string) error {
	switch name {
	case "server", "server_name":
		id.product = word(value)
	case "version":
		id.version = word(value)
	case "run_id":
		id.runID = word(value)
	case "master_replid":
		id.history = word(value)
	case "master_replid2": // zeros, if there is none
		id.before = ""
		if strings.Trim(value, "0") != "" {
			id.before = word(value)
		}
	case "aof_enabled":
		if value == "0" {
			id.volatile = "appendonly no"
		}
	case "redis_version": // in Valkey that of a compatible Redis; its own fields come later
		if id.product == "" {
			id.product, id.version = "redis", word(value)
		}
	case "valkey_version":
		id.product, id.version = "valkey", word(value)
	case "uptime_in_seconds":
		if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
			id.uptime = time.Duration(seconds) * time.Second
		}
	case "maxmemory_policy":
		id.policy = "unknown"
		if slices.Contains(policies, value) {
			id.policy = value
		}
	case "mode", "redis_mode", "server_mode":
		switch value {
		case "sentinel":
			return ErrSentinel
		case "cluster":
			return ErrCluster
		}
	case "role":
		if value != "" && value != "master" && value != "primary" {
			return ErrNotMaster
		}
	}
	return nil
}

// noteInfo takes in a section of INFO, if v is one.
func (id *identity) noteInfo(v *resp.Value) error {
	if v.IsError() {
		return nil
	}
	for line := range strings.Lines(string(v.Bytes)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if err := id.note(name, value); err != nil {
			return err
		}
	}
	return nil
}

// isBefore reports whether the server is, by its own report, a Redis of an earlier major version.
func (id *identity) isBefore(major int) bool {
	number, _, _ := strings.Cut(id.version, ".")
	n, err := strconv.Atoi(number)
	return id.product == "redis" && err == nil && n < major
}

// word is s if it reads like a name, a version or an id, and "" otherwise.
func word(s string) string {
	if refusal.IsWord(s) {
		return s
	}
	return ""
}

// Servers is the servers of connected nodes, by run_id: no server may be two nodes. Fleets that must not share a
// server share one of these. Its lock is taken under the locks of fleets, and nothing is taken under it.
type Servers struct {
	mu sync.Mutex
	of map[string]string // the node of each
}

// claim notes that a node is connected to a server. If another node is so already, it returns the name of the other,
// and not ok.
func (s *Servers) claim(runID, node string) (other string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, taken := s.of[runID]; taken {
		return other, false
	}
	if s.of == nil {
		s.of = make(map[string]string)
	}
	s.of[runID] = node
	return "", true
}

// leave notes the end of a node's connection to a server.
func (s *Servers) leave(runID, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[runID] == node {
		delete(s.of, runID)
	}
}
