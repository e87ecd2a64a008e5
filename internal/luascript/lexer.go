package luascript

import (
	"bytes"
	"strings"
)

// lexeme is a word of the text.
type lexeme struct {
	kind lexemeKind
	text string // a name, a keyword, a symbol; of a string its contents
	num  float64
}

type lexemeKind uint8

const (
	end lexemeKind = iota
	name
	keyword
	number
	text
	symbol
)

var keywords = map[string]bool{
	"and": true, "break": true, "do": true, "else": true, "elseif": true, "end": true, "false": true,
	"for": true, "function": true, "if": true, "in": true, "local": true, "nil": true, "not": true, "or": true,
	"repeat": true, "return": true, "then": true, "true": true, "until": true, "while": true,
}

// symbols, with those first that begin with another.
var symbols = []string{
	"...", "..", "==", "~=", "<=", ">=", "+", "-", "*", "/", "%", "#", "<", ">", "=",
	"(", ")", "{", "}", "[", "]", ";", ":", ",", ".",
}

// lexer takes the text apart.
type lexer struct {
	rest string
	next lexeme
}

// advance returns the present lexeme and reads the next one.
func (x *lexer) advance() lexeme {
	now := x.next
	x.skipBlank()
	x.next = x.read()
	return now
}

func (x *lexer) skipBlank() {
	for {
		x.rest = strings.TrimLeft(x.rest, " \t\r\n\v\f")
		after, isComment := strings.CutPrefix(x.rest, "--")
		if !isComment {
			return
		}
		if level := longBracket(after); level >= 0 {
			x.rest = after
			x.long(level)
			continue
		}
		if i := strings.IndexByte(after, '\n'); i >= 0 {
			x.rest = after[i:]
		} else {
			x.rest = ""
		}
	}
}

func (x *lexer) read() lexeme {
	if x.rest == "" {
		return lexeme{}
	}
	c := x.rest[0]
	switch {
	case isLetter(c):
		n := 1
		for n < len(x.rest) && (isLetter(x.rest[n]) || isDigit(x.rest[n])) {
			n++
		}
		word := x.take(n)
		if keywords[word] {
			return lexeme{kind: keyword, text: word}
		}
		return lexeme{kind: name, text: word}
	case isDigit(c) || c == '.' && len(x.rest) > 1 && isDigit(x.rest[1]):
		return lexeme{kind: number, num: x.number()}
	case c == '"' || c == '\'':
		return lexeme{kind: text, text: x.quoted()}
	}
	if level := longBracket(x.rest); level >= 0 {
		return lexeme{kind: text, text: x.long(level)}
	}
	for _, s := range symbols {
		if strings.HasPrefix(x.rest, s) {
			return lexeme{kind: symbol, text: x.take(len(s))}
		}
	}
	refuse("the text contains %q, which the parser does not know", c)
	return lexeme{}
}

func (x *lexer) take(n int) string {
	taken := x.rest[:n]
	x.rest = x.rest[n:]
	return taken
}

// number reads digits, a fraction and an exponent. Other numbers are rare in scripts for locks.
func (x *lexer) number() float64 {
	n := 1
	for n < len(x.rest) {
		c := x.rest[n]
		isSign := (c == '+' || c == '-') && (x.rest[n-1] == 'e' || x.rest[n-1] == 'E')
		if !isDigit(c) && !isLetter(c) && c != '.' && !isSign {
			break
		}
		n++
	}
	word := x.take(n)
	value, ok := parseNumber([]byte(word))
	if !ok {
		refuse("%q is no decimal number", word)
	}
	return value
}

// longBracket returns the number of '=' between the brackets that open a long string, or -1.
func longBracket(s string) int {
	if s == "" || s[0] != '[' {
		return -1
	}
	level := 0
	for level+1 < len(s) && s[level+1] == '=' {
		level++
	}
	if level+1 < len(s) && s[level+1] == '[' {
		return level
	}
	return -1
}

func (x *lexer) long(level int) string {
	x.take(level + 2)
	contents, rest, found := strings.Cut(x.rest, "]"+strings.Repeat("=", level)+"]")
	if !found {
		refuse("a string or a comment does not end")
	}
	x.rest = rest
	// Lua drops a line break right after the bracket.
	contents = strings.TrimPrefix(contents, "\r")
	return strings.TrimPrefix(contents, "\n")
}

var escapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
	'\\': '\\', '"': '"', '\'': '\'', '\n': '\n',
}

func (x *lexer) quoted() string {
	quote := x.take(1)[0]
	var contents bytes.Buffer
	for x.rest != "" {
		switch c := x.take(1)[0]; {
		case c == quote:
			return contents.String()
		case c == '\n':
			refuse("a string does not end on its line")
		case c != '\\':
			contents.WriteByte(c)
		case x.rest == "":
		case isDigit(x.rest[0]):
			code, n := 0, 0
			for n < 3 && n < len(x.rest) && isDigit(x.rest[n]) {
				code = 10*code + int(x.rest[n]-'0')
				n++
			}
			x.take(n)
			if code > 255 {
				refuse("an escape in a string is above 255")
			}
			contents.WriteByte(byte(code))
		default:
			c := x.take(1)[0]
			escape, ok := escapes[c]
			if !ok {
				refuse("the escape \\%c in a string", c)
			}
			contents.WriteByte(escape)
		}
	}
	refuse("a string does not end")
	return ""
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
