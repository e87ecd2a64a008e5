package luascript

import (
	"slices"
	"strings"
)

// lexeme is a word of the text.
type lexeme struct {
	kind    lexemeKind
	text    string // as written; of a string its contents
	isFirst bool   // of its line
}

type lexemeKind string

const (
	end     lexemeKind = ""
	name    lexemeKind = "name"
	keyword lexemeKind = "keyword"
	number  lexemeKind = "number"
	text    lexemeKind = "string"
	symbol  lexemeKind = "symbol"
)

var (
	keywords = strings.Fields("and break do else elseif end false for function if in local nil not or repeat return then true until while")
	symbols  = strings.Fields("... .. == ~= <= >= + - * / % # < > = ( ) { } [ ] ; : , .") // longer ones before their beginnings
)

type lexer struct {
	rest string
	next lexeme
}

// advance returns the present lexeme and reads the next one.
func (x *lexer) advance() lexeme {
	now, before := x.next, x.rest
	x.skipBlank()
	isFirst := strings.ContainsAny(before[:len(before)-len(x.rest)], "\n\r")
	x.next = x.read()
	x.next.isFirst = isFirst
	return now
}

func (x *lexer) skipBlank() {
	for {
		x.rest = strings.TrimLeft(x.rest, " \t\r\n\v\f")
		after, isComment := strings.CutPrefix(x.rest, "--")
		if !isComment {
			return
		}
		x.rest = after
		if isLong(after) {
			x.long()
		} else {
			x.take(func(c byte) bool { return c != '\n' && c != '\r' }) // both end a line of Lua
		}
	}
}

func (x *lexer) read() lexeme {
	if x.rest == "" {
		return lexeme{}
	}
	switch c := x.rest[0]; {
	case isWord(c) && !isDigit(c):
		word := lexeme{kind: name, text: x.take(isWord)}
		if slices.Contains(keywords, word.text) {
			word.kind = keyword
		}
		return word
	case isDigit(c) || c == '.' && len(x.rest) > 1 && isDigit(x.rest[1]):
		return lexeme{kind: number, text: x.take(func(c byte) bool { return c == '.' || isWord(c) })}
	case c == '"' || c == '\'':
		return lexeme{kind: text, text: x.quoted()}
	case isLong(x.rest):
		return lexeme{kind: text, text: x.long()}
	}
	for _, s := range symbols {
		if rest, ok := strings.CutPrefix(x.rest, s); ok {
			x.rest = rest
			return lexeme{kind: symbol, text: s}
		}
	}
	refuse("the text contains %q, which the parser does not know", x.rest[0])
	return lexeme{}
}

// take takes the bytes of one word.
func (x *lexer) take(belongs func(c byte) bool) (taken string) {
	n := 0
	for n < len(x.rest) && belongs(x.rest[n]) {
		n++
	}
	taken, x.rest = x.rest[:n], x.rest[n:]
	return taken
}

// isLong reports whether brackets open a long string, as in [==[.
func isLong(s string) bool {
	inside, isOpen := strings.CutPrefix(s, "[")
	return isOpen && strings.HasPrefix(strings.TrimLeft(inside, "="), "[")
}

func (x *lexer) long() string {
	level := strings.IndexByte(x.rest[1:], '[')
	contents, rest, found := strings.Cut(x.rest[level+2:], "]"+x.rest[1:1+level]+"]")
	if !found {
		refuse("a string or a comment does not end")
	}
	x.rest = rest
	// Lua drops a line break right after the bracket.
	return strings.TrimPrefix(strings.TrimPrefix(contents, "\r"), "\n")
}

// quoted reads a string. No lock script has an escape in one.
func (x *lexer) quoted() string {
	contents, rest, found := strings.Cut(x.rest[1:], x.rest[:1])
	if !found || strings.ContainsAny(contents, "\n\r") {
		refuse("a string does not end on its line")
	} else if strings.Contains(contents, `\`) {
		refuse("an escape in a string")
	}
	x.rest = rest
	return contents
}

func isWord(c byte) bool  { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
