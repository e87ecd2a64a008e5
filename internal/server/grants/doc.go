// Package grants is the locks of N masters as clients of a single Redis know them: a key that
// holds a value for a time. It knows no wire and no command; package frontend translates.
//
// The idea: such a client believes three things that are not true of a lock on a majority, and
// this room makes them true.
//
//   - Its time counts from the reply on. Validity counts from before the nodes are asked, and less
//     drift. So a TTL is padded ([Stored]), and a grant that came later than its padding is extended
//     once, by what was measured. What a client reads is without the padding ([Shown]), and when its
//     time is over, a grant is none for it and none for the next.
//   - Its value proves ownership. But clients use a value many times, and the library's safety
//     rests on a token that no other attempt had. So the nodes store a fresh token and then the
//     value (token.WithValue). A release or an extension names the value; what is released is
//     the one token that a quorum has with that value.
//   - A failure is an error. ErrNoQuorum is never reported as "taken" or "not held".
//
// The table of grants is a cache: it saves a release the round trip that reads the token. It
// decides nothing, since another front end may have released, extended or granted the lock
// meanwhile: what the table has is tried first, and if the nodes do not hold it they are asked what
// they have. So front ends share nothing, and any may be restarted.
//
// Store.mu guards the table and the waiters. No call to the client is made under it.
package grants
