// Package grants has the locks of N masters in the form known to clients of a single Redis: a key with a value for a
// time. It knows no wire and no command; package frontend translates.
//
// The idea: such a client has three beliefs, none true of a lock on a majority. This room makes
// them true.
//
//   - Its time counts from the reply on. Validity counts from before the question to the nodes,
//     less drift. So a TTL is padded ([Stored]). A grant later than its padding is extended once,
//     by the measured time. A client reads times without the padding ([Shown]), and once its time
//     is over, a grant counts for neither it nor the next client.
//   - Its value proves ownership. But clients reuse values, and the library's safety rests on a
//     token new to each attempt. So the nodes store a fresh token and then the value
//     (token.WithValue). A release or an extension names the value, and acts on the one token of a
//     quorum with this value.
//   - A failure is an error. ErrNoQuorum is never reported as "taken" or "not held".
//
// The table of grants is a cache: it saves a release the round trip to read the token. It decides nothing, since
// another front end may have released, extended or granted the lock meanwhile. A change is tried with the table's token
// first. If the nodes do not hold it, they are asked for theirs. So front ends share nothing, and any may be restarted.
// This process alone knows one thing: its changes under way. A grant has a state for them (see state).
//
// Store.mu guards the table and the waiters. No call to the client is made under it.
package grants
