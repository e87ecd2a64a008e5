package conn

import "github.com/redlock-go/redlock/internal/script"

// Script is a Lua text that a node must know before it can be asked for locks.
type Script struct {
	Text string
	SHA1 string // its digest in hexadecimal
	// For says which nodes can do without it.
	For Purpose
	// Probe is what follows EVALSHA and the digest in a call that changes
	// nothing. It is made on every new connection, to find out whether the
	// script may be run; and, where it must not be loaded, whether somebody
	// else has loaded it. Nil: the script is not tried.
	Probe []string
}

// Purpose is what a script is for.
type Purpose uint8

const (
	// ForAll is a script that every node needs.
	ForAll Purpose = iota
	// ForRelease is one that nodes need whose [ReleaseForm] is a script.
	ForRelease
	// ForExtend is one that nodes need whose [ExtendForm] is a script.
	ForExtend
)

// neededBy says whether a node that speaks d cannot do without the script.
func (s *Script) neededBy(d Dialect) bool {
	switch s.For {
	case ForRelease:
		return d.Release == ReleaseScript
	case ForExtend:
		return d.Extend == ExtendScript
	}
	return true
}

// LockScripts are the scripts that locks are released and extended by.
func LockScripts() []Script {
	return []Script{
		{script.Release, script.ReleaseSHA1, ForRelease, []string{"1", probeKey, probeToken}},
		{script.Extend, script.ExtendSHA1, ForExtend, []string{"1", probeKey, probeToken, "1000"}},
	}
}
