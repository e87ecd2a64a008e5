package fencing

import _ "embed"

// The scripts are a node's half of the protocol. KEYS[1] is the fleet's sorted set; me is
// "<fleet>:<run_id>". Its members are the marker (score -1), "floor", and "k" with the name
// of a lock key for each F. Numbers come and go as decimal text: Lua writes 1.79e15 with 14
// digits only.
//
// An answer is 1, or an array of a Code and its text. For several keys it is an array of answers,
// one for each key in order.

// AcquireScript records the block of an attempt on each of several keys and sets these, or refuses.
//
//	KEYS: set, key…   ARGV: me, then first, last, nonce, ttl of each key; known
var AcquireScript = markerLua + acquireLua

// ExtendScript sets the time to live of keys with the attempt's nonce.
//
//	KEYS: set, key…   ARGV: me, nonce…, ttl…; known
var ExtendScript = markerLua + extendLua

// MemberScript is the verbs about a node's vote: see package fencenode. A voting node answers Active
// to requests meant for nodes without a vote. An answer that shows a node has as its text the
// largest token, a space, and the marker.
//
//	KEYS: set   ARGV: notice me nonce | resume me | rejoin me nonce floor fleet | seal me nonce |
//	                  read me | show me | raise me x | collect me age
//
//go:embed member.lua
var MemberScript string

// Parts of the scripts about keys. markerLua answers for all keys, where the node has no vote. A
// client of one configuration knows the marker that serves it, found at once. A client of two ends
// its arguments with the marker last shown by the node, if this serves it (known): to compare the
// names of an unknown marker takes a server a third to a half of the time of a call about one key.
var (
	//go:embed marker.lua
	markerLua string
	//go:embed acquire.lua
	acquireLua string
	//go:embed extend.lua
	extendLua string
)

// The digests under which servers know the scripts; a test recomputes them.
const (
	AcquireSHA1 = "a64e3c2dfc8d98f2f893b34d466aa86c0639f921"
	ExtendSHA1  = "ae21c650c92d444a1b5556e17ff6fcd4df926bff"
	MemberSHA1  = "a5cfa7419b84af06798ebdac249ab3eb2b4e0a10"
)
