package fencing

import _ "embed"

// The scripts are a node's half of the protocol; MODEL.md has the messages. An answer is 1, or an array of a Code and
// its text. A call about keys answers with an array, one answer for each key in order, or with a single answer if the
// node has no vote. An acquire granted on all keys answers with their number.

// AcquireScript records the block of an attempt on each of several keys and sets these, or refuses. The blocks of a
// call are equally long: spare is the number of tokens beside the first. least is the least token of all. lasts is one
// text, with [LastDigits] digits for each key: a server takes longer for an argument than for a piece of one. ttl is
// empty if the keys have different TTLs.
//
//	KEYS: set, key…   ARGV: me, least, spare, ttl, lasts, nonce…, ttl…; known
var AcquireScript = ofKeys + markerLua + acquireLua

// ExtendScript sets the time to live of keys with the attempt's nonce.
//
//	KEYS: set, key…   ARGV: me, nonce…, ttl…; known
var ExtendScript = ofKeys + markerLua + extendLua

// SharedScript comes before a script of shared locks on fenced nodes: it answers if the node has no vote. me is before
// the other script's arguments, and known behind them.
var SharedScript = "local set, me = KEYS[1], ARGV[1]\n" + markerLua

// MemberScript has the verbs about a node's vote: see package fencenode. A voting node answers Active to requests meant
// for nodes without a vote. The text of each answer shows the node: its largest token, a space, and its marker.
//
//	KEYS: set   ARGV: notice me nonce | resume me nonce | rejoin me nonce floor fleet | seal me nonce |
//	                  read me | show me | raise me x | collect me age
//
//go:embed member.lua
var MemberScript string

// ofKeys comes before the scripts about keys.
const ofKeys = "local set, me, n = KEYS[1], ARGV[1], #KEYS - 1\n"

// Parts of the scripts about keys. If the node has no vote, markerLua answers once for all keys, since a buffer of the
// client bounds an answer. A client of one configuration knows the marker that serves it, found at once. A client of
// two ends its arguments with the marker last shown by the node, if this serves it (known): to compare the names of an
// unknown marker takes a server a third to a half of the time of a call about one key.
var (
	//go:embed marker.lua
	markerLua string
	//go:embed acquire.lua
	acquireLua string
	//go:embed extend.lua
	extendLua string
)

// LastDigits is the number of digits of a block's last token in a call of AcquireScript. [MaxToken] has as many.
const LastDigits = 16

// The digests of the scripts, by which servers know them; a test recomputes them.
const (
	AcquireSHA1 = "9fa305a60990c0c11a1c9d8b8719a3d833df7541"
	ExtendSHA1  = "77dd0c7f4fef1ace68c3e1c370162ff536adef2b"
	MemberSHA1  = "b8715ae44b74c026fef6743dd8fdf3517d1a20a8"
)
