package fencing

import _ "embed"

// The scripts do what the methods of Node do. KEYS[1] is the fleet's sorted set; me is
// "<fleet>:<run_id>". Its members are the marker (score -1), "floor", and "k" with the name
// of a lock key for each F. Numbers come and go as decimal text: Lua writes 1.79e15 with 14
// digits only.
//
// An answer is 1, or an array of a Code and its text; those about several keys are an
// array of answers, one for each key in order.

// AcquireScript is Acquire for several keys, and sets the lock keys.
//
//	KEYS: set, key…   ARGV: me, then first, last, nonce, ttl of each key; known
var AcquireScript = markerLua + acquireLua

// ExtendScript is Extend for several keys, and sets their time to live.
//
//	KEYS: set, key…   ARGV: me, nonce…, ttl…; known
var ExtendScript = markerLua + extendLua

// MemberScript is Notice, Resume, Rejoin, Seal, Read, Show, Raise and Collect. Where a node has a
// vote, what is for nodes that have none is answered with Active. The text of an answer that shows
// a node is its largest token, a space, and the marker.
//
//	KEYS: set   ARGV: notice me nonce | resume me | rejoin me nonce floor fleet | seal me nonce |
//	                  read me | show me | raise me x | collect me age
//
//go:embed member.lua
var MemberScript string

// What the scripts about keys are joined of: markerLua answers for all keys, where the node has no
// vote. A client of one configuration knows the marker that serves it, which is found at once. One of two
// ends its arguments with the marker that the node has shown last, if that serves it (known): to
// compare the names of an unknown one takes a server a third to a half of the time of a call about one key.
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
