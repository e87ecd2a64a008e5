package command

// Kind is what an operation does.
type Kind uint8

const (
	// Acquire sets the key to the token where there is no key.
	Acquire Kind = 1 + iota
	// Extend gives the key a new TTL where it holds the token.
	Extend
	// Release deletes the key where it holds the token.
	Release

	Kinds = Release + 1 // for arrays by Kind
)

// String returns "acquire", "extend" or "release", "none" for the zero Kind, and
// "unknown" for others.
func (k Kind) String() string {
	if k >= Kinds {
		return "unknown"
	}
	return [...]string{"none", "acquire", "extend", "release"}[k]
}

// IsValid says whether k is one of the constants.
func (k Kind) IsValid() bool { return k > 0 && k < Kinds }

// HasTTL says whether commands of the kind carry a TTL.
func (k Kind) HasTTL() bool { return k == Acquire || k == Extend }

// Classes is how many ranks there are.
const Classes = 3

// Rank is the place of a kind where commands may be written in any order: releases
// first, since they free keys that acquires behind them may want.
func (k Kind) Rank() int { return int(Release - k) }

// OfRank is the kind of a rank.
func OfRank(rank int) Kind { return Release - Kind(rank) }
