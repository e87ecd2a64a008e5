package luascript

import "slices"

// Class is the effect of a script on a lock: see the table in the package comment.
type Class uint8

const (
	Query          Class = iota // changes nothing
	Acquire                     // sets the keys where they are absent
	AcquireOrRenew              // the same, and extends where they hold the token
	Release                     // deletes the keys where they hold the token
	Extend                      // sets the TTL where the keys hold the token
	ForceRelease                // deletes the keys, no matter what they hold
	ForceExtend                 // sets the TTL, no matter what the keys hold
)

func (c Class) String() string {
	return [...]string{"query", "acquire", "acquire or renew", "release", "extend", "force release", "force extend"}[c]
}

// Holding is the content of a key at the beginning of the script.
type Holding uint8

const (
	Absent  Holding = iota
	Owned           // the token
	Foreign         // another value
)

// Plan is the effect of one call of a script. Its byte slices are those given to Classify.
type Plan struct {
	Class Class
	Keys  [][]byte // of the lock, each once; more than one only for Acquire, Release and Extend
	DB    int      // the database selected by the script; -1: the connection's

	// Token is the argument compared with the value, or written, by the script. It is nil if the script does neither;
	// then the rows of Owned and Foreign are equal.
	Token []byte
	Rows  [3]Row // by the holding of all keys

	run *run // of several keys: for In
}

// Row is the effect of a script in one world.
type Row struct {
	Effect   Effect
	TTL      TTL // of Set and Expire
	Reply    Reply
	Messages []Message

	hasSignalled bool
}

// Message is a published message. Messages with an unknown part are left out.
type Message struct{ Channel, Text []byte }

// Effect is the change of a key by the script.
type Effect uint8

const (
	None   Effect = iota
	Set           // it was absent and holds Token
	Delete        // it was there and is absent
	Expire        // its value stays, with a new TTL
)

// TTL is a time to live set by a script.
type TTL struct {
	Milliseconds int64 // more than 0, unless Rest is set
	Rest         bool  // Milliseconds are added to the rest of the present TTL
	None         bool  // no expiry
}

// Reply is the client's reply.
type Reply struct {
	Kind  Kind
	Int   int64 // of Int; of PTTL and TTLSeconds the addend
	Text  []byte
	Items []Reply
}

// Shows reports whether a part of a reply is the content of the keys.
func (r *Reply) Shows() bool {
	return r.Kind >= Value || slices.ContainsFunc(r.Items, func(item Reply) bool { return item.Shows() })
}

// Kind is the kind of a Reply.
type Kind uint8

const (
	Nil Kind = iota
	Int
	Bulk
	Status // Text is the part after '+'
	Error  // Text is the part after '-'
	Array
	Value      // the value at the key as its client knows it, as a bulk
	PTTL       // the rest of the TTL at the time of the call, in ms, plus Int, as an integer
	TTLSeconds // the same in whole seconds
)
