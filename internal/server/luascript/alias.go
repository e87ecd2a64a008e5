package luascript

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

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
// With keys=1 behind the hash one member of KEYS is a key, and the others stand before those of
// ARGV.
func ParseAliases(text []byte) (scripts []*Script, err error) {
	line := 1
	for i, part := range strings.Split("\n"+string(text), "\n-- alias ") {
		head, body, _ := strings.Cut(part, "\n")
		words := aliasHead.FindStringSubmatch(head)
		switch s, err := Parse([]byte(body)); {
		case i == 0 && noComment.MatchString(body):
			return nil, fmt.Errorf("line %d: what is no comment stands before the first \"-- alias \"", line)
		case i == 0:
		case words == nil:
			return nil, fmt.Errorf("line %d: \"-- alias \" wants a SHA1, 40 digits in lower-case hex, and keys=n at most", line)
		case err != nil:
			return nil, fmt.Errorf("the alias in line %d: %w", line, err)
		default:
			s.name = words[1]
			s.keys, _ = strconv.Atoi(words[2])
			scripts = append(scripts, s)
		}
		if line += strings.Count(part, "\n"); i > 0 {
			line++
		}
	}
	return scripts, nil
}
