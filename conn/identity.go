package conn

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/wire/refusal"
	"github.com/redlock-go/redlock/resp"
)

// identity is what one handshake has shown of a server.
type identity struct {
	Server
	policy string // what it evicts when memory is short; "" if not reported
	// volatile holds the settings that show that it forgets in a restart, of a node declared persistent.
	volatile string
	looks    bool // it may be asked for its role again: see look.go
	tracks   bool // it pushes that all its keys are gone; likewise
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
		id.Product = word(value)
	case "version":
		id.Version = word(value)
	case "run_id":
		id.RunID = word(value)
	case "master_replid":
		id.History = word(value)
	case "master_replid2": // zeros, if there is none
		id.Before = ""
		if strings.Trim(value, "0") != "" {
			id.Before = word(value)
		}
	case "aof_enabled":
		if value == "0" {
			id.volatile = "appendonly no"
		}
	case "redis_version": // in Valkey that of a compatible Redis; its own fields come later
		if id.Product == "" {
			id.Product, id.Version = "redis", word(value)
		}
	case "valkey_version":
		id.Product, id.Version = "valkey", word(value)
	case "uptime_in_seconds":
		if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
			id.Uptime = time.Duration(seconds) * time.Second
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

// word is s if it reads like a name, a version or an id, and "" otherwise.
func word(s string) string {
	if refusal.IsWord(s) {
		return s
	}
	return ""
}

// servers holds the servers of connected nodes, by run_id: no server may be two nodes. The fleet's lock protects it.
type servers map[string]*node

// claim notes that a node is connected to a server. If another node is so already, it returns that one.
func (s servers) claim(runID string, n *node) (other *node) {
	other = s[runID]
	if other == nil {
		s[runID] = n
	}
	return other
}

// leave notes the end of a node's connection to a server.
func (s servers) leave(runID string, n *node) {
	if s[runID] == n {
		delete(s, runID)
	}
}
