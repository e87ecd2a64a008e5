package conn

import "slices"

// Dialect says in which commands a node is asked to compare a token before it
// acts. It is found out for each connection by trying the commands, never by a
// version number: forks, proxies and access lists differ from what versions
// promise. The zero Dialect is understood by every server since Redis 2.6.
type Dialect struct {
	Release ReleaseForm
	Extend  ExtendForm
}

// ReleaseForm is how a key is deleted where it holds a token.
type ReleaseForm uint8

const (
	// ReleaseScript is one script for many keys.
	ReleaseScript ReleaseForm = iota
	// ReleaseDelIfEq is DELIFEQ key token, of Valkey 9.0.
	ReleaseDelIfEq
	// ReleaseDelEx is DELEX key IFEQ token, of Redis 8.4.
	ReleaseDelEx
)

// ExtendForm is how a key is given a new TTL where it holds a token.
type ExtendForm uint8

const (
	// ExtendScript is one script for many keys.
	ExtendScript ExtendForm = iota
	// ExtendSetIfEq is SET key token IFEQ token PX ttl, of Valkey 8.1 and
	// Redis 8.4.
	ExtendSetIfEq
)

// String names the commands, for people.
func (d Dialect) String() string {
	release := [...]string{"EVALSHA", "DELIFEQ", "DELEX"}[d.Release]
	extend := [...]string{"EVALSHA", "SET IFEQ"}[d.Extend]
	if release == extend {
		return release
	}
	return release + ", " + extend
}

// MarshalText is String, for what publishes a [Node].
func (d Dialect) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Dialects are those of the nodes that are up, each once. The slice is the
// fleet's, and changes with them.
func (f *Fleet) Dialects() []Dialect { return f.dialects }

// Dialect is the one of a node that is up.
func (f *Fleet) Dialect(node int) Dialect { return f.nodes[node].dialect }

// enlist finds out which dialects are in use, and which nodes are away.
func (f *Fleet) enlist() {
	f.dialects, f.away = f.dialects[:0], 0
	for i, n := range f.nodes {
		if n.sock == nil {
			f.away |= 1 << i
		} else if !slices.Contains(f.dialects, n.dialect) {
			f.dialects = append(f.dialects, n.dialect)
		}
	}
}

// Unlearn makes a node be asked by scripts in place of the native forms in d, for
// as long as its connection lasts: it has refused a command that it seemed to
// understand. What is on its way to it stays as it is.
func (f *Fleet) Unlearn(node int, d Dialect) {
	n := f.nodes[node]
	if d.Release == n.dialect.Release {
		n.dialect.Release = ReleaseScript
	}
	if d.Extend == n.dialect.Extend {
		n.dialect.Extend = ExtendScript
	}
	f.enlist()
}
