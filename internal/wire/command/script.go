package command

import _ "embed"

// Two Lua scripts compare a token before they act on a key. Their SHA1 digests are constants:
// nothing is hashed at run time, and nothing breaks where SHA-1 is forbidden.
//
// Both take 1 to MaxKeys keys and answer with an array of as many integers, 1 if the key held the token and 0 if it did
// not. So operations waiting together cost one call into Lua. If a release has deleted all keys, as it usually does,
// the answer is their number: this saves the server two tables and an array. They read the keys with MGET. It answers
// nil for a key of another type, while GET would end the script with an error.
//
//	EVALSHA ReleaseSHA1 n key… token… [stay-in-ms]
//	EVALSHA ExtendSHA1  n key… token… ttl-in-ms…

// MaxKeys bounds the keys of one call: a script blocks its server while it runs, and more keys save little.
const MaxKeys = 128

// ReleaseScript deletes each key that still holds its token. Given a stay, it instead lets the key end by itself after
// the stay, and no later than before.
//
//go:embed release.lua
var ReleaseScript string

// ExtendScript sets a new time to live, in milliseconds, on each key that still holds its token. It
// never creates a key.
//
//go:embed extend.lua
var ExtendScript string

// The digests of the scripts; a test recomputes them.
const (
	ReleaseSHA1 = "07d3d8b41d70286ad506fcc0cfe0a7c99a43ce52"
	ExtendSHA1  = "2c3a17f9ef1bfb84ec137f2a1b3fc61221d31833"
)
