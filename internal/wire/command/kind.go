package command

// Kind is the kind of an operation.
type Kind uint8

const (
	// Acquire sets the key to the token if there is no key.
	Acquire Kind = 1 + iota
	// Extend gives the key a new TTL if it holds the token.
	Extend
	// Release deletes the key if it holds the token.
	Release
	// Look asks what an Acquire would find, and sets nothing. It is granted if there is no key.
	Look

	Kinds = Look + 1 // for arrays by Kind
)

// String returns "acquire", "extend", "release" or "look", "none" for the zero Kind, and "unknown" for others.
func (k Kind) String() string {
	if k >= Kinds {
		return "unknown"
	}
	return [...]string{"none", "acquire", "extend", "release", "look"}[k]
}

// HasTTL reports whether commands of the kind have a TTL.
func (k Kind) HasTTL() bool { return k == Acquire || k == Extend }

// ByRank is the order of commands with no order of their own. Releases come first, since they free
// keys for the acquires after them.
var ByRank = [...]Kind{Release, Extend, Acquire, Look}

// Rank is the place of each kind in that order.
var Rank = [Kinds]uint8{Release: 0, Extend: 1, Acquire: 2, Look: 3}
