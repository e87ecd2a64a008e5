// Package quorum holds the decisions of the Redlock algorithm and nothing else:
// how many nodes make a quorum, what the votes of a round add up to, and how
// long a lock that was won stays valid.
//
// The package has no socket, no clock and no goroutine. Votes and instants are
// handed in, decisions come out, so a whole history of a lock can be replayed
// from a list of numbers. No decision blocks, allocates or returns an error,
// and nothing locks: a value belongs to one goroutine at a time.
//
// # A round
//
// A round is one command sent to all N nodes. Each node's vote has one of three
// outcomes: [Granted] (it did what was asked), [Denied] (it answered, and
// another token holds the key) or [Failed] (no usable answer: unreachable, too
// late, or an error). A [Tally] adds the votes up and gives its [Verdict] at the
// earliest vote that settles it, in both directions:
//
//	Won      granted ≥ Size(N)            the rest can no longer take it away
//	Lost     granted + waiting < Size(N)  the rest can no longer bring it about
//	Pending  neither
//
// So no caller waits for the slowest node. Its vote is still recorded when it
// comes, because a node that grants after the round was lost holds a key that
// has to be released.
//
// A lost round in which more nodes failed than [Tolerates] allows had too few answers. Any other
// one was lost to another client.
//
// # Time
//
// An instant is a [time.Duration] read from one monotonic clock; only
// differences between readings of the same clock mean anything. A lock is valid
// until start + TTL - drift, where start was read before the first byte of the
// round was sent ([Until]). All of it saturates instead of wrapping around: an
// absurd TTL makes a lock that is not valid, or valid for less than was asked, and
// never one that is valid for longer.
//
// The rules are those of
// https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
//
// # What is promised
//
// The names and meanings of this package stay for a program that embeds package redlock: the
// sizes, the outcomes and the verdict are those by which it decides.
package quorum
