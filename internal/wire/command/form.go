package command

// Form holds the commands used by a node to compare a token before it acts. Extends are scripts in all forms: SET …
// IFEQ would shorten a key. Probes try the native commands on each connection. Version numbers mislead: forks, proxies
// and access lists do not keep to them. Every server since Redis 2.6 understands the zero Form.
type Form uint16

const (
	// DelIfEq releases by DELIFEQ key token, of Valkey 9.0.
	DelIfEq Form = 1 << iota
	// DelEx releases by DELEX key IFEQ token, of Redis 8.4.
	DelEx

	// Fenced: acquires and extends run the scripts of package fencing.
	Fenced

	// Shared: the operands are holders of shared locks, with scripts for every kind.
	Shared

	// repairing: an acquire gives a node back its lost part of a lock. Gates do not refuse it.
	repairing

	releases = DelIfEq | DelEx

	// Scripts is the zero Form: one script call for many keys.
	Scripts Form = 0
)

// IsScript reports whether a kind is sent as a script call, with several operands.
func (f Form) IsScript(k Kind) bool {
	return k == Release && f&releases == 0 || k == Extend || f.IsFenced(k) || f&Shared != 0
}

// For is f with the commands for an operand. No native command fits a shared lock, or a release of a key that stays.
func (f Form) For(k Kind, op *Operand) Form {
	switch {
	case op.Shared:
		return f.Without(releases) | Shared
	case k == Release && op.TTL > 0:
		return f.Without(releases)
	}
	return f
}

// IsFenced reports whether a kind is sent as a call of a script of package fencing.
func (f Form) IsFenced(k Kind) bool { return f&Fenced != 0 && k.HasTTL() }

// nodeShift is the place of the node in a Form, counted from 1: the node's life is an argument of
// the scripts of package fencing, so each node has its own commands.
const nodeShift = 8

// ForNode is the fenced f for one node.
func (f Form) ForNode(node int) Form { return f | Fenced | Form(node+1)<<nodeShift }

func (f Form) node() int { return int(f>>nodeShift) - 1 }

// Without is f without the native commands in asked: scripts replace them.
func (f Form) Without(asked Form) Form { return f &^ (asked & releases) }

// Repairing is f for repairs: these are not fenced.
func (f Form) Repairing() Form { return f&releases | repairing }

// String names the commands, for people.
func (f Form) String() string {
	switch {
	case f&DelIfEq != 0:
		return "DELIFEQ, EVALSHA"
	case f&DelEx != 0:
		return "DELEX, EVALSHA"
	}
	return "EVALSHA"
}
