package luascript

import (
	_ "embed"
	"fmt"
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

const alias = "-- alias "

// ParseAliases reads lock scripts that stand for others, which the parser refuses. Each follows a line with the
// hash of the other, as EVALSHA has it:
//
//	-- alias 80a1b5f2cfccec3b7119ba7721d2127682b691a7
//	if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end
//
// With keys=1 behind the hash one member of KEYS is a key, and the others stand before those of ARGV.
func ParseAliases(text []byte) (scripts []*Script, err error) {
	lines := strings.SplitAfter(string(text), "\n")
	for i := 0; i < len(lines); {
		begin := i
		for i++; i < len(lines) && !strings.HasPrefix(lines[i], alias); i++ {
		}
		head, ok := strings.CutPrefix(lines[begin], alias)
		body := strings.Join(lines[begin:i], "")
		if !ok {
			if s, err := Parse([]byte(body)); err != nil || len(s.main) > 0 {
				return nil, fmt.Errorf("line %d: what is no comment stands before the first %q", begin+1, alias)
			}
			continue
		}
		s, err := Parse([]byte(body))
		if err != nil {
			return nil, fmt.Errorf("the alias in line %d: %w", begin+1, err)
		}
		hash, keys, hasKeys := strings.Cut(strings.TrimSpace(head), " keys=")
		if s.keys, err = strconv.Atoi(keys); hasKeys && (err != nil || s.keys < 1) || len(hash) != 40 || strings.Trim(hash, "0123456789abcdef") != "" {
			return nil, fmt.Errorf("line %d: %q wants a SHA1, 40 digits in lower-case hex, and keys=n at most", begin+1, alias)
		}
		s.name = hash
		scripts = append(scripts, s)
	}
	return scripts, nil
}
