// Package luascript finds out the effect of a lock script, so a server without Lua can do the same on a majority of
// masters. It is pure: no clock, no network, no goroutine.
//
// The idea: a lock is one string key, and a script can distinguish at most three states of it: the
// key is absent, it holds the client's token, or it holds another value. So the script is run in
// these three worlds, with the arguments of the call. Its changes and replies in each are a table of
// three rows. The class follows from the table:
//
//	absent       token's      other's     class
//	-            delete       -           Release
//	-            expire       -           Extend
//	set          -            -           Acquire
//	set          expire       -           AcquireOrRenew
//	-            -            -           Query
//	-            delete       delete      ForceRelease
//	-            expire       expire      ForceExtend
//
// Neither the wording of a script counts, nor the order of its commands: a row compares the state
// before with the state after. Anything beyond the table is a Refusal, with the reason.
//
// Use: Parse a text once and keep the Script under its SHA1. Classify each call, since a class may
// depend on the arguments (one text acquires or extends by an argument "yes"). ParseAliases reads
// lock scripts standing for others, known by their hash; they are Scripts too.
//
// # What keeps it sound
//
// A refused script costs its user a clear error; a wrongly classified one costs a lock. So:
//
//  1. Every command in the text is one of the subset, even in branches that no world enters: "check the lock, then
//     write data" is no query. Everything else unknown to the parser (functions, while, string functions, globals) is
//     refused with the text.
//  2. The value at the key is opaque. It may be tested for presence, returned, and compared with
//     one argument of the call: this is the token. Compared with a constant, with two different
//     arguments or with a key, ordered, cut, joined or converted it is refused: there would be more
//     than three worlds.
//  3. The rest of the TTL is an unknown n >= 1. It may be returned, and a number may be added. A
//     comparison with different results for different n is refused.
//  4. A written value is an argument of the call, the compared one if any. A key with the token
//     never gets another value.
//  5. Keys come from KEYS. All keys read or written are the lock, and are treated alike. With
//     several keys the script is also run in worlds where one of them differs from the others:
//     there it may not acquire or extend a part.
//  6. PUBLISH, and a push of constants to a key never read, are signals to waiters. They are left out, so they are
//     allowed only if the lock is released.
//  7. Size, nesting, steps and the lengths of strings are bounded.
//
// No text of an error contains a value sent by a client: it may be a token.
package luascript
