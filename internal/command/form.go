package command

// Form says in which commands a node is asked to compare a token before it acts.
// It is found out for each connection by trying the commands, never by a version
// number: forks, proxies and access lists differ from what versions promise. The
// zero Form is understood by every server since Redis 2.6.
type Form uint8

const (
	// DelIfEq releases by DELIFEQ key token, of Valkey 9.0.
	DelIfEq Form = 1 << iota
	// DelEx releases by DELEX key IFEQ token, of Redis 8.4.
	DelEx
	// SetIfEq extends by SET key token IFEQ token PX ttl, of Valkey 8.1 and
	// Redis 8.4.
	SetIfEq

	releases = DelIfEq | DelEx

	// Scripts is the zero Form: one script call for many keys.
	Scripts Form = 0
)

// IsScript says whether a kind is asked for by a script call, which takes several
// operands.
func (f Form) IsScript(k Kind) bool {
	return k == Release && f&releases == 0 || k == Extend && f&SetIfEq == 0
}

// Without is f with scripts in place of the native commands for a kind that asked
// has.
func (f Form) Without(k Kind, asked Form) Form {
	mask := SetIfEq
	if k == Release {
		mask = releases
	}
	return f &^ (asked & mask)
}

// String names the commands, for people.
func (f Form) String() string {
	release, extend := "EVALSHA", "EVALSHA"
	switch {
	case f&DelIfEq != 0:
		release = "DELIFEQ"
	case f&DelEx != 0:
		release = "DELEX"
	}
	if f&SetIfEq != 0 {
		extend = "SET IFEQ"
	}
	if release == extend {
		return release
	}
	return release + ", " + extend
}
