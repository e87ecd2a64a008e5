package luascript

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MaxSource is the size of the longest text accepted by Parse, in bytes: some four times the size of the longest known
// lock script. It takes about a millisecond.
const MaxSource = 8 << 10

// Script is a text accepted by Parse, or one standing for another. It does not change, and several
// goroutines may use it.
type Script struct {
	Name  string // in EVALSHA
	main  statement
	slots int
	keys  int // of an alias: how many members of KEYS are keys; 0: all
}

// Name returns the name under which EVALSHA calls a script: its SHA1 in lower-case hex. It is a
// name, not a protection.
func Name(source []byte) string { return sha1Hex(source) }

// Parse reads the text of a script. The error is a *Refusal. It does not keep source.
func Parse(source []byte) (s *Script, err error) {
	s = &Script{Name: Name(source)}
	defer catch(s.Name, &err)
	if len(source) > MaxSource {
		refuse("the text has %d bytes, where %d is the most", len(source), MaxSource)
	}
	p := &parser{lexer: lexer{rest: string(source)}}
	p.advance()
	s.main = p.block()
	s.slots = p.slots
	if p.next.kind != end {
		p.unexpected()
	}
	return s, nil
}

//go:embed known.lua
var knownAliases []byte

// Known returns the aliases that come with the package.
func Known() []*Script {
	scripts, err := ParseAliases(knownAliases)
	if err != nil {
		panic("luascript: known.lua: " + err.Error())
	}
	return scripts
}

var (
	aliasHead = regexp.MustCompile(`^([0-9a-f]{40})(?: keys=([1-9]))?\s*$`)
	noComment = regexp.MustCompile(`(?m)^\s*-?[^-\s]`)
)

// ParseAliases reads lock scripts standing for others, refused by the parser. Each follows a line
// with the hash of the other, in EVALSHA's form:
//
//	-- alias 80a1b5f2cfccec3b7119ba7721d2127682b691a7
//	if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end
//
// With keys=1 behind the hash one member of KEYS is a key, and the others precede the members of ARGV.
func ParseAliases(text []byte) (scripts []*Script, err error) {
	parts := strings.Split("\n"+string(text), "\n-- alias ")
	if noComment.MatchString(parts[0]) {
		return nil, fmt.Errorf("line 1: only comments may stand before the first \"-- alias \"")
	}
	line := strings.Count(parts[0], "\n") + 1
	for _, part := range parts[1:] {
		head, text, _ := strings.Cut(part, "\n")
		words := aliasHead.FindStringSubmatch(head)
		s, err := Parse([]byte(text))
		switch {
		case words == nil:
			return nil, fmt.Errorf("line %d: \"-- alias \" wants a SHA1, 40 digits in lower-case hex, and keys=n at most", line)
		case err != nil:
			return nil, fmt.Errorf("the alias in line %d: %w", line, err)
		}
		s.Name = words[1]
		s.keys, _ = strconv.Atoi(words[2])
		scripts = append(scripts, s)
		line += strings.Count(part, "\n") + 1
	}
	return scripts, nil
}

// Refusal is the error of a script without a Plan. It contains no argument of a call.
type Refusal struct {
	SHA1   string // the name of the script
	Reason string // "HGET on KEYS[1]"
}

func (r *Refusal) Error() string {
	return "script " + r.SHA1 + " is not a lock script this server knows: " + r.Reason
}

// refused is the panic value inside the package; Parse and Classify make it a Refusal.
type refused string

// refuse leaves Parse or Classify: a recursive parser would otherwise consist of checks for errors.
func refuse(format string, args ...any) {
	panic(refused(fmt.Sprintf(format, args...)))
}

// catch makes a refuse the error of the deferring function.
func catch(name string, err *error) {
	if reason := recover(); reason != nil {
		*err = &Refusal{SHA1: name, Reason: string(reason.(refused))} // or panics, as before
	}
}
