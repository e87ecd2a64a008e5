// Package quorum holds the decisions of the Redlock algorithm and nothing else: how many nodes make a quorum, the
// verdict on the votes of a round, and how long a won lock stays valid.
//
// The package has no socket, no clock and no goroutine. Votes and instants are
// arguments and decisions are results, so the history of a lock can be replayed
// from a list of numbers. No function blocks, allocates or returns an error. Nothing
// is synchronized: a [Tally] belongs to one goroutine at a time.
//
// # A round
//
// A round is one command sent to all N nodes. Each node's vote has one of three outcomes: [Granted] (it did as
// asked), [Denied] (it answered, and another token holds the key) or [Failed] (no usable answer: unreachable, too
// late, or an error). A [Tally] adds the votes up and gives its [Verdict] at the earliest decisive vote, in both
// directions:
//
//	Won      granted ≥ Size(N)            no other vote can change it
//	Lost     granted + waiting < Size(N)  no other vote can win it
//	Pending  neither
//
// So no caller waits for the slowest node. Its vote is still recorded when it comes: a grant after the round was lost
// leaves a key, to be released.
//
// A lost round in which more than N - Size(N) nodes failed had too few answers. Any other one was lost to another
// client.
//
// # While the nodes change
//
// A [Config] has the nodes, and decides which sets of them are a quorum. [Majority] is the plain one. [Joint] is of
// two lists, the nodes before a change and the nodes after it: a set is a quorum if it has a majority of each. Its
// tally is two tallies over one set of votes, since a node of both lists is one node with one vote:
//
//	Won      both are won
//	Lost     one is lost
//	Pending  else
//
// Two majorities of one list share a node, and no node grants a key twice. So two clients exclude each other if their
// configurations have a list in common. This is the whole proof of a change from list A to list B in two steps:
//
//	step     0        1        2
//	lists    A       A, B      B
//
// Neighbouring steps have a list in common, also if the change is taken back, so clients go from
// one to the next one after another. Steps 0 and 2 have none, so step 2 begins when no client of
// step 0 runs, and the locks of the last of them have ended.
//
// # Time
//
// An instant is a [time.Duration] read from one monotonic clock; only differences between readings of the same clock
// mean anything. A lock is valid until start + TTL - drift, where start was read before the first byte of the round
// was sent ([Until]). All of it saturates instead of wrapping around: an absurd TTL makes an invalid lock, or one
// valid for less than requested, never for longer.
//
// The rules are those of
// https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
//
// # What is promised
//
// Package redlock decides by these functions and no others, so a program to replay or check its histories gets the
// same verdicts and instants. Names and meanings stay.
package quorum
