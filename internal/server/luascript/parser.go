package luascript

import "slices"

const (
	maxNesting = 64
	maxLocals  = 200 // as in Lua
)

// parser makes functions of lexemes. A name is resolved at once: a local becomes a slot of run.locals, any other must
// be one of the few known globals.
type parser struct {
	lexer
	scopes  []map[string]int
	slots   int
	nesting int
}

func (p *parser) unexpected() {
	switch kind := p.next.kind; {
	case kind == end:
		refuse("the text ends too early")
	case kind == number || kind == text:
		refuse("an unexpected %s", kind)
	case p.is("function"):
		refuse("a function is defined")
	}
	refuse("an unexpected %q", p.next.text)
}

// is reports whether one of the keywords and symbols is next.
func (p *parser) is(words ...string) bool {
	return (p.next.kind == keyword || p.next.kind == symbol) && slices.Contains(words, p.next.text)
}

// accept takes word if it is next.
func (p *parser) accept(word string) bool {
	isNext := p.is(word)
	if isNext {
		p.advance()
	}
	return isNext
}

func (p *parser) expect(word string) {
	if !p.accept(word) {
		p.unexpected()
	}
}

func (p *parser) name() string {
	if p.next.kind != name {
		p.unexpected()
	}
	return p.advance().text
}

// listOf reads one item or more.
func listOf[T any](p *parser, read func() T) (items []T) {
	for items = append(items, read()); p.accept(","); {
		items = append(items, read())
	}
	return items
}

// deeper bounds the recursion; the caller defers its result.
func (p *parser) deeper() func() {
	p.nesting++
	if p.nesting > maxNesting {
		refuse("more than %d levels of nesting", maxNesting)
	}
	return func() { p.nesting-- }
}

// declare puts variables in the present scope, in successive slots.
func (p *parser) declare(names []string) (slots []int) {
	for _, name := range names {
		if p.slots == maxLocals {
			refuse("more than %d local variables", maxLocals)
		}
		p.scopes[len(p.scopes)-1][name] = p.slots
		slots = append(slots, p.slots)
		p.slots++
	}
	return slots
}

func (p *parser) find(name string) (slot int, isLocal bool) {
	for i := len(p.scopes) - 1; i >= 0 && !isLocal; i-- {
		slot, isLocal = p.scopes[i][name]
	}
	return slot, isLocal
}

// isAtEnd reports whether a block ends here.
func (p *parser) isAtEnd() bool { return p.next.kind == end || p.is("end", "else", "elseif") }
