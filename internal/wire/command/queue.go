package command

import (
	"bytes"
	_ "embed"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/resp"
)

// Commands to one node that notify waiting processes of a freed lock, and decide which process is next. None of them is
// a vote.
//
// For each lock wanted by several processes, a node has a queue of them, and for each process a
// ticket, a key with an expiry: a process without a ticket has left the queue. The names of both
// begin with the key of the lock, so an access list for locks covers them.
//
// The place of a process whose callers share the lock begins with a letter of its own (sharing). Neighbours with such
// places are in turn together.
//
// The script of the queue enters a process into it, at the end (Enter; Again for one that may be there already), or
// takes it out (Leave; part, if its key has a value). It drops leading processes without a ticket. A renewal of a place
// calls ZADD too: a node that refuses it refuses all processes alike, and they meet on the next node. A first process
// with others behind it gets a short ticket, by PEXPIRE. This notifies the process, since it tracks its ticket.
//
// A gap is a place before all others (Gap), with a ticket that no process renews. A key beside the queue remembers it,
// so the processes of a queue leave one gap together, not one each. The last process to leave takes the gap along.
//
//	EVALSHA QueueSHA1 2 queue ticket id way alone first behind gap every
//	EVALSHA QueueSHA1 3 queue ticket key id way alone first behind gap every value
//
// The script answers with four numbers: whether the process (1) or a gap (2) is in turn; the number of other processes,
// for a sharer of the lock only of those that do not share it; the lifetime of its ticket; and the lifetime of the
// first's ticket if the process is not in turn. A process that does not share the lock learns only whether there are no
// others, one or more. For a process that enters at the end, or parts, the lifetime of the first's ticket is the
// longest possible. So a hand-over costs the node few commands.

// QueueScript is the script of the queue, and QueueSHA1 its digest.
//
//go:embed queue.lua
var QueueScript string

const QueueSHA1 = "822fe4bf97c40749428e5e331bf7e017287e7c50"

// Way is the action of the script of the queue.
type Way string

const (
	Enter Way = "enter"
	Again Way = "again"
	Leave Way = "leave"
	Gap   Way = "gap"  // enter, behind a gap if none was left lately
	part  Way = "part" // leave, if the key has a token of the process
)

// Suffixes to the key of a lock, in the names of these keys.
const (
	sharing      = "r" // begins the places of sharers
	queueSuffix  = ":redlock:queue"
	gapSuffix    = ":redlock:gap" // queue.lua derives it from the queue's
	ticketSuffix = ":redlock:ticket:"
	proofSuffix  = ":redlock:proof:"
)

// AppendTracking switches tracking on for a connection, and makes the node push at once, as a proof that pushes arrive.
// For this a key is tracked, and set for a millisecond, while the connection's own changes are pushed too. The key is
// not the ticket, since a push of the ticket is a ring. Without OPTIN, release scripts would track all keys of all
// locks.
func AppendTracking(dst []byte, key, id string) (_ []byte, replies int) {
	const on = "*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nOPTIN\r\n"
	dst = appendWatch(append(dst, on...), key, proofSuffix, id)
	dst = append(dst, "*5\r\n$3\r\nSET\r\n"...)
	dst = appendName(dst, key, proofSuffix, id)
	dst = append(dst, "$0\r\n\r\n$2\r\nPX\r\n"...)
	dst = appendInt(dst, 1)
	return append(dst, "*5"+on[2:]+"$6\r\nNOLOOP\r\n"...), 5
}

// AppendQueue writes the call of the script of the queue for a lock, and then the tracking of the process's ticket: a
// change by the connection itself ends tracking. The replies are the script's, CLIENT CACHING's and PTTL's. With Gap
// the queue leaves no other gap for the time given by rarely.
func AppendQueue(dst []byte, key, id string, shared bool, way Way, rarely time.Duration) (_ []byte, replies int) {
	if shared {
		id = sharing + id
	}
	dst = appendQueue(append(dst, "*12\r\n"+callBySHA+QueueSHA1+"\r\n$1\r\n2\r\n"...), key, "", id, way, rarely)
	if way == Leave {
		return dst, 1
	}
	return appendWatch(dst, key, ticketSuffix, id), 3
}

// AppendPart writes the call of the script of the queue that follows the acquire of a process in it. If the key has
// this value now, the process leaves, and the next is rung. Otherwise the first number of the reply is negative.
func AppendPart(dst []byte, key, id, value string) (_ []byte, replies int) {
	dst = appendQueue(append(dst, "*14\r\n"+callBySHA+QueueSHA1+"\r\n$1\r\n3\r\n"...), key, key, id, part, 0)
	return resp.AppendBulkString(dst, value), 1
}

func appendQueue(dst []byte, key, held, id string, way Way, rarely time.Duration) []byte {
	dst = appendName(dst, key, queueSuffix, "")
	dst = appendName(dst, key, ticketSuffix, id)
	if held != "" {
		dst = resp.AppendBulkString(dst, held)
	}
	dst = resp.AppendBulkString(dst, id)
	dst = resp.AppendBulkString(dst, string(way))
	for _, d := range [...]time.Duration{contention.AloneTicket, contention.FirstTicket, contention.BehindTicket, contention.GapLength, rarely} {
		dst = appendInt(dst, d.Milliseconds())
	}
	return dst
}

// AppendWatch makes a node track the key of a lock: it pushes at the next change. The replies are those of CLIENT
// CACHING, PTTL and GETRANGE; a shared lock refuses the last one by its type. For a process that wants to share the
// lock, the node tracks the gate too, with two more replies. With gap the last reply, of EXISTS, shows whether the
// queue has left a gap lately.
func AppendWatch(dst []byte, key string, shared, gap bool) (_ []byte, replies int) {
	dst, replies = appendRange(appendWatch(dst, key, "", ""), key, 1), 3
	if shared {
		dst, replies = appendWatch(dst, key, gateSuffix, ""), replies+2
	}
	if gap {
		dst, _ = AppendExists(dst, []string{key + gapSuffix})
		replies++
	}
	return dst, replies
}

// GateLasts is the lifetime of a gate.
const GateLasts = time.Second

// AppendGate puts up the gate of a process before a shared lock, or takes it down. There is one reply.
func AppendGate(dst []byte, key, id string, up bool) (_ []byte, replies int) {
	gate := key + gateSuffix
	if !up {
		return Append(dst, Release, Scripts, []Operand{{Key: []byte(gate), Token: []byte(id)}}, nil), 1
	}
	dst = resp.AppendBulkString(append(dst, "*5\r\n$3\r\nSET\r\n"...), gate)
	dst = append(resp.AppendBulkString(dst, id), "$2\r\nPX\r\n"...)
	return appendInt(dst, GateLasts.Milliseconds()), 1
}

// AppendRead asks for the time to live of a key, and then for the beginning of its value. The lock with this value had
// that time to live, or has been extended since. Other clients may share the namespace with values of any size.
func AppendRead(dst []byte, key string) (_ []byte, replies int) {
	dst = resp.AppendBulkString(append(dst, "*2\r\n$4\r\nPTTL\r\n"...), key)
	return appendRange(dst, key, readBytes), 2
}

func appendRange(dst []byte, key string, n int64) []byte {
	dst = resp.AppendBulkString(append(dst, "*4\r\n$8\r\nGETRANGE\r\n"...), key)
	return appendInt(append(dst, "$1\r\n0\r\n"...), n-1)
}

// readBytes is the number of bytes read of a value.
const readBytes = 512

// NoTTL is the answer of PTTL for a key without a time to live.
const NoTTL = -1

// AppendExists asks how many of the given keys exist.
func AppendExists(dst []byte, keys []string) (_ []byte, replies int) {
	dst = append(resp.AppendArray(dst, 1+len(keys)), "$6\r\nEXISTS\r\n"...)
	for _, key := range keys {
		dst = resp.AppendBulkString(dst, key)
	}
	return dst, 1
}

// AppendPing writes a PING.
func AppendPing(dst []byte) (_ []byte, replies int) {
	return append(dst, "*1\r\n$4\r\nPING\r\n"...), 1
}

// Watched is the kind of a tracked key of a lock.
type Watched uint8

const (
	OfLock   Watched = iota // its key, or its gate
	OfTicket                // the ticket of a process
	OfQueue
)

// CutWatched returns the key of the lock from a tracked key beside it: its gate, its queue or the ticket of id. Any
// other tracked key is returned as it is.
func CutWatched(name []byte, id string) (key []byte, what Watched) {
	if key, ok := bytes.CutSuffix(name, []byte(gateSuffix)); ok {
		return key, OfLock
	}
	if key, ok := bytes.CutSuffix(name, []byte(queueSuffix)); ok {
		return key, OfQueue
	}
	if before, ok := bytes.CutSuffix(name, []byte(id)); ok {
		before = bytes.TrimSuffix(before, []byte(sharing))
		if key, ok := bytes.CutSuffix(before, []byte(ticketSuffix)); ok {
			return key, OfTicket
		}
	}
	return name, OfLock
}

// AppendListen takes a process without callers out of a queue, and gets the number of others there, for a sharer only
// of those that do not share the lock. Then the node tracks the queue, if asked to. The replies are those of the
// script, of CLIENT CACHING and of PTTL. The script comes first, since a change by the connection itself would end the
// tracking.
func AppendListen(dst []byte, key, id string, shared, tracks bool) (_ []byte, replies int) {
	dst, replies = AppendQueue(dst, key, id, shared, Leave, 0)
	if tracks {
		dst, replies = appendWatch(dst, key, queueSuffix, ""), replies+2
	}
	return dst, replies
}

func appendWatch(dst []byte, key, suffix, id string) []byte {
	dst = append(dst, "*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nYES\r\n*2\r\n$4\r\nPTTL\r\n"...)
	return appendName(dst, key, suffix, id)
}

func appendName(dst []byte, key, suffix, id string) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(key)+len(suffix)+len(id)), 10)
	dst = append(append(append(append(dst, '\r', '\n'), key...), suffix...), id...)
	return append(dst, '\r', '\n')
}
