package command

// Form says which commands a node has to compare a token before it acts. Probes try
// the commands on each connection. The version number is not used, since forks,
// proxies and access lists differ from it. Every server since Redis 2.6 understands
// the zero Form.
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

// Without is f without the native commands of asked for a kind: scripts replace them.
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
