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
//	KEYS: set, key…   ARGV: me, then first, last, nonce, ttl of each key
//
//go:embed acquire.lua
var AcquireScript string

// ExtendScript is Extend for several keys, and sets their time to live.
//
//	KEYS: set, key…   ARGV: me, nonce…, ttl…
//
//go:embed extend.lua
var ExtendScript string

// MemberScript is Notice, Resume, Rejoin, Read, Show, Raise and Collect. Where a node has a
// vote, what is for nodes that have none is answered with Active.
//
//	KEYS: set   ARGV: notice me nonce | resume me | rejoin me nonce floor | read me | show me |
//	                  raise me x | collect me age
//
//go:embed member.lua
var MemberScript string

// The digests under which servers know the scripts; a test recomputes them.
const (
	AcquireSHA1 = "d4ef5725e9fce4f3fd4347ce13a90ff6dae4cf6b"
	ExtendSHA1  = "b6852e2f0f964afd155e329447d313a261a88f9d"
	MemberSHA1  = "a3a3cebcbce3d5f3201b737e37dd8150161fc1e8"
)
