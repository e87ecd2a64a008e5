package command

import (
	_ "embed"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/resp"
)

// A shared lock is a sorted set at the key of the lock: a member for each holder, with its end in
// milliseconds by the server's clock as its score. A member is there before its end, and the key
// expires with the last one. So a set and the string of an exclusive lock refuse each other.
//
// A gate is a string beside the key. It refuses new holders at its node: an exclusive caller waits
// for the present ones.
//
//	SharedAcquire  key, gate…   0, or 1 to pass gates; for each key: n, then n times token, ttl
//	SharedExtend   key…         for each key: n, then n times token, ttl
//	SharedRelease  key…         for each key: n, then n tokens
//
// Each answers with the number of tokens if it has done all. Otherwise it answers with an array, for each token 1 or 0,
// or 2 if only a gate has refused it. The calls of several holders of one key share one command for it, and so its
// cost.
//
// An acquire adds members, and changes none. It is refused by a string, by a key of another type, and by a key without
// an expiry, since this is no lock. A repair brings lost members back to a node, past gates: their holders have a
// quorum. An extend changes the present members that have not ended, and gives none an earlier end. A release gives the
// key the end of the last member left.
//
// On fenced nodes acquires and extends begin with the marker's script. The fleet's set is before the keys, me before
// the other arguments, and the known marker at the end.
var (
	//go:embed shared_acquire.lua
	sharedAcquireLua string
	//go:embed shared_extend.lua
	sharedExtendLua string
	//go:embed shared_release.lua
	SharedReleaseScript string
	// SharedLookScript shows a shared lock: the number of holders, and for some of them a line with the time left and
	// the member, the longest first, as many as fit into 4 KB.
	//
	//	KEYS: key   ARGV: how many lines
	//
	//go:embed shared_look.lua
	SharedLookScript string

	SharedAcquireScript       = sharedArgs + sharedAcquireLua
	SharedExtendScript        = sharedArgs + sharedExtendLua
	FencedSharedAcquireScript = fencing.SharedScript + fencedSharedArgs + sharedAcquireLua
	FencedSharedExtendScript  = fencing.SharedScript + fencedSharedArgs + sharedExtendLua
)

// Where the keys and the arguments of a script begin.
const (
	sharedArgs       = "local first, at = 1, 1\n"
	fencedSharedArgs = "local first, at = 2, 2\n"
)

// The digests of the scripts; a test recomputes them.
const (
	SharedAcquireSHA1       = "f6d9e1471c1f342ed817623d8e07fb2a341f54d7"
	SharedExtendSHA1        = "faa15da6b734c1fa0a1ac2a768d07adc188e56a7"
	SharedReleaseSHA1       = "a68962f4e4e135e5e5bb0398247ed17663eaef76"
	SharedLookSHA1          = "4d968e9de70f65dcba3378d9c279867b6d79e6f3"
	FencedSharedAcquireSHA1 = "f7836eb7a690ef313b2e1ac1ce059578419e4313"
	FencedSharedExtendSHA1  = "2112edb95aee97569e628da9ebf3eee1b9b66844"
)

// gateSuffix follows the key of the lock in the name of its gate.
const gateSuffix = ":redlock:gate"

// AppendHolders asks for the holders of a shared lock, by SharedLookScript.
func AppendHolders(dst []byte, key string, most int) (_ []byte, replies int) {
	dst = append(dst, "*5\r\n"+callBySHA+SharedLookSHA1+"\r\n$1\r\n1\r\n"...)
	return appendInt(resp.AppendBulkString(dst, key), int64(most)), 1
}
