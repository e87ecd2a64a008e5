package conn

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/refusal"
	"github.com/redlock-go/redlock/resp"
)

// identity is what a server told of itself in the handshake of one connection.
// It is the server's word: bounded and printable, but not otherwise true.
type identity struct {
	runID   string        // made anew by every process start; "" if it does not tell
	product string        // "redis" or "valkey"
	version string        // as the server names it
	uptime  time.Duration // by its own clock; 0 if it does not tell
	policy  string        // what it evicts when memory is short; "" if it does not tell
	form    Form
}

// noEviction is the only policy under which no key goes before its time.
const noEviction = "noeviction"

// policies are those known: what else a server says here is not repeated.
var policies = []string{
	noEviction, "allkeys-lru", "allkeys-lfu", "allkeys-lrm", "allkeys-random",
	"volatile-lru", "volatile-lfu", "volatile-lrm", "volatile-random", "volatile-ttl",
}

// readHello takes in the answer to HELLO, which maps names to values, some of
// them nested. It returns why such a server must not be a node.
func (id *identity) readHello(v *resp.Value) error {
	var mode, role string
	it := v.Elements()
	for it.Next() {
		name := string(it.Value().Bytes)
		if !it.Next() {
			break
		}
		value := it.Value().Bytes
		switch name {
		case "server":
			id.product = word(string(value))
		case "version":
			id.version = word(string(value))
		case "mode":
			mode = string(value)
		case "role":
			role = string(value)
		}
	}
	return checkRole(mode, role)
}

// readInfo takes in a section of INFO, whichever it is. It returns why such a
// server must not be a node.
func (id *identity) readInfo(info string) error {
	var mode, role string
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "run_id":
			id.runID = word(value)
		case "redis_version", "server_name", "valkey_version":
			id.readVersion(name, word(value))
		case "uptime_in_seconds":
			if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
				id.uptime = time.Duration(seconds) * time.Second
			}
		case "maxmemory_policy":
			if id.policy = "unknown"; slices.Contains(policies, value) {
				id.policy = value
			}
		case "redis_mode", "server_mode":
			mode = value
		case "role":
			role = value
		}
	}
	return checkRole(mode, role)
}

// readVersion sorts out a field of INFO that says which server this is. Valkey
// calls a version of Redis that it is compatible with redis_version, and names
// its own further on.
func (id *identity) readVersion(field, value string) {
	switch {
	case field == "server_name":
		id.product = value
	case field == "valkey_version":
		id.product, id.version = "valkey", value
	case id.product == "":
		id.product, id.version = "redis", value
	}
}

// checkRole judges what a server says it is. What it does not say counts for it,
// but an unknown role is not that of a master.
func checkRole(mode, role string) error {
	switch {
	case mode == "sentinel":
		return ErrSentinel
	case mode == "cluster":
		return ErrCluster
	case role != "" && role != "master" && role != "primary":
		return ErrNotMaster
	}
	return nil
}

// warn tells the user of a node that may drop keys before their time, once for
// each process behind an address: before is what was known of the last one.
func (id *identity) warn(log *slog.Logger, addr string, before identity) {
	safe := id.policy == "" || id.policy == noEviction
	if log == nil || safe || id.runID == before.runID && id.policy == before.policy {
		return
	}
	log.Warn("redlock: node may evict locks when its memory is short; set its maxmemory-policy to "+noEviction,
		"node", addr, "policy", id.policy)
}

// word is s if it reads like a name, a version or an id, and "" otherwise.
func word(s string) string {
	if refusal.IsWord(s) {
		return s
	}
	return ""
}
