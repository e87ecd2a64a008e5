package luascript

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed known.txt
var knownList []byte

// Known returns the list that comes with the package.
func Known() []*Script {
	scripts, err := ParseList(knownList)
	if err != nil {
		panic("luascript: known.txt: " + err.Error())
	}
	return scripts
}

// entry is a script that is known by its hash: where its arguments are, and the table.
type entry struct {
	keys  int // the lock is KEYS[keys]; 0: all of KEYS
	token reference
	class Class
	rows  [3]line
}

// reference is a member of KEYS or of ARGV.
type reference struct {
	isKey bool
	n     int
}

// line is a row of the table. The milliseconds of its TTL are those of the unit of ttl.
type line struct {
	Row
	ttl       reference
	isWritten bool
}

// ParseList reads a list of scripts that the parser refuses, and that are known by their hash:
//
//	script 80a1b5f2cfccec3b7119ba7721d2127682b691a7 # hex, as EVALSHA has it
//	key    KEYS[1]                                   # or KEYS: all of them
//	token  ARGV[1]                                   # or a member of KEYS
//	absent set ARGV[3] ms    reply +OK
//	owned  expire ARGV[3] ms reply +OK
//	other  none              reply nil
//
// The rows are those of the table in the package comment: none, delete, set or expire with an
// argument, in ms or s, and the word longer where a TTL that is longer is left alone. Replies are
// nil, an integer, +status, -error, "string", value, pttl and ttl, and [ … ] of those that are one
// word. "#" begins a comment.
func ParseList(list []byte) (scripts []*Script, err error) {
	number := 0
	var last *Script
	defer func() {
		if reason, ok := recover().(refused); ok {
			scripts, err = nil, fmt.Errorf("line %d: %s", number, string(reason))
		}
	}()
	for text := range strings.Lines(string(list)) {
		number++
		text, _, _ = strings.Cut(text, "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if words[0] == "script" {
			last.complete()
			last = &Script{name: hashOf(words[1:]), entry: &entry{keys: -1}}
			scripts = append(scripts, last)
		} else if last == nil {
			refuse("%q before the first script", words[0])
		} else {
			last.entry.read(words[0], words[1:])
		}
	}
	last.complete()
	return scripts, nil
}

func hashOf(words []string) string {
	if len(words) != 1 || len(words[0]) != 40 || strings.Trim(words[0], "0123456789abcdef") != "" {
		refuse("script takes a SHA1: 40 digits in lower-case hex")
	}
	return words[0]
}

var rowNames = []string{Absent: "absent", Owned: "owned", Foreign: "other"}

func (e *entry) read(what string, words []string) {
	switch what {
	case "key":
		e.keys = 0
		if len(words) != 1 || words[0] != "KEYS" {
			ref := referenceOf(words, 1)
			if e.keys = ref.n; !ref.isKey {
				refuse("key takes KEYS[n] or KEYS")
			}
		}
		return
	case "token":
		e.token = referenceOf(words, 1)
		return
	}
	for h, name := range rowNames {
		if what == name {
			if e.rows[h].isWritten {
				refuse("%s twice", name)
			}
			e.rows[h] = lineOf(words)
			return
		}
	}
	refuse("%q is none of script, key, token, absent, owned and other", what)
}

func referenceOf(words []string, most int) reference {
	if len(words) >= 1 && len(words) <= most {
		array, rest, _ := strings.Cut(words[0], "[")
		n, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
		if err == nil && n >= 1 && strings.HasSuffix(rest, "]") && (array == "KEYS" || array == "ARGV") {
			return reference{array == "KEYS", n}
		}
	}
	refuse("%q is neither KEYS[n] nor ARGV[n]", strings.Join(words, " "))
	return reference{}
}

// lineOf reads the rest of a row: an effect, its TTL, and what is replied.
func lineOf(words []string) line {
	l := line{isWritten: true}
	effect, ok := map[string]Effect{"none": None, "set": Set, "delete": Delete, "expire": Expire}[first(words)]
	if !ok {
		refuse("%q is none of none, set, delete and expire", first(words))
	}
	l.Effect, words = effect, words[1:]
	if effect == Set || effect == Expire {
		l.ttl = referenceOf(words, len(words))
		words = words[1:]
		factor, ok := map[string]int64{"ms": 1, "s": 1000}[first(words)]
		if !ok {
			refuse("a TTL is in ms or in s, not in %q", first(words))
		}
		l.TTL.Milliseconds, words = factor, words[1:]
		if first(words) == "longer" && effect == Expire {
			l.TTL.Longer, words = true, words[1:]
		}
	}
	if len(words) < 2 || words[0] != "reply" {
		refuse("a row ends with reply and the reply")
	}
	l.Reply = writtenReply(strings.Join(words[1:], " "))
	return l
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

func writtenReply(s string) Reply {
	switch s {
	case "nil":
		return Reply{}
	case "value":
		return Reply{Kind: Value}
	case "pttl":
		return Reply{Kind: PTTL}
	case "ttl":
		return Reply{Kind: TTLSeconds}
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && s[0] != '+' {
		return Reply{Kind: Int, Int: n}
	}
	if unquoted, err := strconv.Unquote(s); err == nil && s[0] == '"' {
		return Reply{Kind: Bulk, Text: []byte(unquoted)}
	}
	switch s[0] {
	case '[':
		r := Reply{Kind: Array}
		for _, item := range strings.Fields(strings.TrimSuffix(s[1:], "]")) {
			r.Items = append(r.Items, writtenReply(item))
		}
		return r
	case '+':
		return Reply{Kind: Status, Text: []byte(s[1:])}
	case '-':
		return Reply{Kind: Error, Text: []byte(s[1:])}
	}
	refuse("%q is no reply", s)
	return Reply{}
}

// complete checks an entry when the next one begins.
func (s *Script) complete() {
	if s == nil {
		return
	}
	e := s.entry
	for h, name := range rowNames {
		if !e.rows[h].isWritten {
			refuse("script %s has no row %s", s.name, name)
		}
	}
	if e.keys < 0 {
		refuse("script %s has no key", s.name)
	}
	e.class = classOf(e.rows[Absent].Effect, e.rows[Owned].Effect, e.rows[Foreign].Effect)
	if e.token == (reference{}) && e.class != Query && e.class != ForceRelease && e.class != ForceExtend {
		refuse("script %s has no token", s.name)
	}
}

// plan fills in the arguments of a call.
func (e *entry) plan(keys, argv [][]byte) Plan {
	take := func(ref reference) []byte {
		from, name := argv, "ARGV"
		if ref.isKey {
			from, name = keys, "KEYS"
		}
		if ref.n > len(from) {
			refuse("the call has no %s[%d]", name, ref.n)
		}
		return from[ref.n-1]
	}
	row := func(h Holding) Row {
		l := e.rows[h]
		if l.ttl.n > 0 {
			n, err := strconv.ParseInt(string(take(l.ttl)), 10, 64)
			if err != nil || n <= 0 || n > maxTTL/l.TTL.Milliseconds {
				refuse("the TTL is no positive integer")
			}
			l.TTL.Milliseconds *= n
		}
		return l.Row
	}
	p := Plan{Class: e.class, DB: -1, Absent: row(Absent), Owned: row(Owned), Other: row(Foreign)}
	if e.token.n > 0 {
		p.Token = take(e.token)
	}
	if e.keys > 0 {
		p.Keys = [][]byte{take(reference{true, e.keys})}
		return p
	}
	for _, k := range keys {
		if !slices.ContainsFunc(p.Keys, func(other []byte) bool { return bytes.Equal(k, other) }) {
			p.Keys = append(p.Keys, k)
		}
	}
	if len(p.Keys) == 0 {
		refuse("the call has no key")
	}
	checkSeveral(p.Class, len(p.Keys))
	return p
}
