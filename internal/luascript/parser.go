package luascript

import "strings"

const (
	maxNesting = 64
	maxLocals  = 200 // as in Lua
)

// parser makes statements of lexemes. A name is resolved where it is met: a local becomes a slot,
// all else must be one of the few globals that are known.
type parser struct {
	lexer
	scopes  []map[string]local
	slots   int
	nesting int
	loops   int
}

func parse(source string) (main block, slots int) {
	p := &parser{lexer: lexer{rest: source}}
	p.advance()
	main = p.block()
	if p.next.kind != end {
		p.unexpected()
	}
	return main, p.slots
}

func (p *parser) unexpected() {
	switch p.next.kind {
	case end:
		refuse("the text ends too early")
	case number:
		refuse("an unexpected number")
	case text:
		refuse("an unexpected string")
	}
	refuse("an unexpected %q", p.next.text)
}

func (p *parser) is(word string) bool {
	return (p.next.kind == keyword || p.next.kind == symbol) && p.next.text == word
}

// accept takes word if it is next.
func (p *parser) accept(word string) bool {
	if p.is(word) {
		p.advance()
		return true
	}
	return false
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

// deeper bounds the recursion; the caller defers what it returns.
func (p *parser) deeper() func() {
	if p.nesting++; p.nesting > maxNesting {
		refuse("more than %d levels of nesting", maxNesting)
	}
	return func() { p.nesting-- }
}

func (p *parser) declare(name string) local {
	if p.slots == maxLocals {
		refuse("more than %d local variables", maxLocals)
	}
	slot := local(p.slots)
	p.slots++
	p.scopes[len(p.scopes)-1][name] = slot
	return slot
}

func (p *parser) find(name string) (slot local, found bool) {
	for i := len(p.scopes) - 1; i >= 0 && !found; i-- {
		slot, found = p.scopes[i][name]
	}
	return slot, found
}

// block reads statements up to a keyword that ends them, in the scope that loop variables are declared in.
func (p *parser) block(variables ...string) (b block) {
	defer p.deeper()()
	p.scopes = append(p.scopes, map[string]local{})
	defer func() { p.scopes = p.scopes[:len(p.scopes)-1] }()
	for _, v := range variables {
		p.declare(v)
	}
	for p.next.kind != end && !p.is("end") && !p.is("else") && !p.is("elseif") {
		if p.accept(";") {
			continue
		}
		isLast := p.is("return") || p.is("break")
		b = append(b, p.statement())
		if p.accept(";"); isLast {
			break
		}
	}
	return b
}

func (p *parser) statement() statement {
	switch {
	case p.next.kind == name:
		return p.callOrAssignment()
	case p.accept("local"):
		return p.declaration()
	case p.accept("if"):
		return p.conditional()
	case p.accept("for"):
		return p.loop()
	case p.accept("do"):
		b := p.block()
		p.expect("end")
		return conditional{otherwise: b}
	case p.accept("return"):
		return p.giving()
	case p.accept("break"):
		if p.loops == 0 {
			refuse("break outside of a loop")
		}
		return leave{}
	case p.next.kind == keyword:
		refuse("the statement %s", p.next.text)
	}
	p.unexpected()
	return nil
}

func (p *parser) giving() statement {
	if p.next.kind == end || p.is("end") || p.is("else") || p.is("elseif") || p.is(";") {
		return giving{constant{}}
	}
	s := giving{p.expression(0)}
	if p.is(",") {
		refuse("more than one value is returned")
	}
	return s
}

func (p *parser) declaration() statement {
	if p.is("function") {
		refuse("a function is defined")
	}
	names := []string{p.name()}
	for p.accept(",") {
		names = append(names, p.name())
	}
	s := assignment{from: []expression{constant{}}}
	if p.accept("=") {
		s.from = p.expressions()
	}
	for _, name := range names { // in scope from here on
		s.to = append(s.to, p.declare(name))
	}
	return s
}

func (p *parser) callOrAssignment() statement {
	slot, isLocal := p.find(p.next.text)
	if !isLocal {
		before := p.lexer
		if name := p.name(); p.is("=") || p.is(",") {
			refuse("assigns to %s, which is no local variable", name)
		}
		p.lexer = before
		switch e := p.suffixed().(type) {
		case *command:
			e.isStatement = true
			return call{e}
		case function, field, unused:
			return call{e}
		}
		refuse("a statement that does nothing")
	}
	s := assignment{to: []local{slot}}
	p.advance()
	for p.accept(",") {
		slot, isLocal := p.find(p.next.text)
		if name := p.name(); !isLocal {
			refuse("assigns to %s, which is no local variable", name)
		}
		s.to = append(s.to, slot)
	}
	if !p.is("=") {
		refuse("a local variable is called, or a part of it assigned")
	}
	p.advance()
	s.from = p.expressions()
	return s
}

func (p *parser) conditional() statement {
	s := conditional{}
	for {
		s.conditions = append(s.conditions, p.expression(0))
		p.expect("then")
		s.blocks = append(s.blocks, p.block())
		if !p.accept("elseif") {
			break
		}
	}
	if p.accept("else") {
		s.otherwise = p.block()
	}
	p.expect("end")
	return s
}

func (p *parser) loop() statement {
	p.loops++
	defer func() { p.loops-- }()
	first := p.name()
	if p.accept("=") {
		s := counting{from: p.expression(0), step: constant{num(1)}}
		p.expect(",")
		s.to = p.expression(0)
		if p.accept(",") {
			s.step = p.expression(0)
		}
		p.expect("do")
		s.of = local(p.slots)
		s.body = p.block(first)
		p.expect("end")
		return s
	}
	p.expect(",")
	second := p.name()
	p.expect("in")
	if iterator := p.name(); iterator != "ipairs" && iterator != "pairs" {
		refuse("a loop over %s", iterator)
	}
	p.expect("(")
	s := each{of: p.expression(0)}
	p.expect(")")
	p.expect("do")
	s.index, s.item = local(p.slots), local(p.slots+1)
	s.body = p.block(first, second)
	p.expect("end")
	return s
}

func (p *parser) expressions() []expression {
	es := []expression{p.expression(0)}
	for p.accept(",") {
		es = append(es, p.expression(0))
	}
	return es
}

// priorities of the binary operators; ".." binds to the right.
var priorities = map[string]int{
	"or": 1, "and": 2, "<": 3, ">": 3, "<=": 3, ">=": 3, "~=": 3, "==": 3,
	"..": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}

const ofUnary = 7

// expression reads operators of a higher priority than above.
func (p *parser) expression(above int) (left expression) {
	defer p.deeper()()
	switch {
	case p.accept("not"):
		left = inverse{p.expression(ofUnary)}
	case p.accept("-"):
		left = negation{p.expression(ofUnary)}
	case p.accept("#"):
		left = length{p.expression(ofUnary)}
	default:
		left = p.simple()
	}
	for p.next.kind == symbol || p.next.kind == keyword {
		sign := p.next.text
		priority := priorities[sign]
		if priority <= above {
			break
		}
		p.advance()
		switch sign {
		case "and", "or":
			left = logic{sign == "or", left, p.expression(priority)}
		case "..":
			left = operation{sign, left, p.expression(priority - 1)}
		default:
			left = operation{sign, left, p.expression(priority)}
		}
	}
	return left
}

func (p *parser) simple() expression {
	switch {
	case p.next.kind == number:
		return constant{num(p.advance().num)}
	case p.next.kind == text:
		return constant{literal(p.advance().text)}
	case p.accept("nil"):
		return constant{}
	case p.accept("true"):
		return constant{yes}
	case p.accept("false"):
		return constant{no}
	case p.is("{"):
		return p.table()
	case p.is("function"):
		refuse("a function is defined")
	}
	return p.suffixed()
}

func (p *parser) table() expression {
	p.expect("{")
	a := array{}
	for !p.is("}") {
		if p.next.kind == name {
			before := p.lexer
			if name := p.name(); p.accept("=") {
				return p.field(name, len(a.items) == 0)
			}
			p.lexer = before
		}
		a.items = append(a.items, p.expression(0))
		if !p.accept(",") && !p.accept(";") {
			break
		}
	}
	p.expect("}")
	return a
}

// field reads the rest of {ok = …} or {err = …}.
func (p *parser) field(name string, isFirst bool) expression {
	if name != "ok" && name != "err" {
		refuse("a table with the field %s", name)
	}
	f := field{name, p.expression(0)}
	if p.expect("}"); !isFirst {
		refuse("a table with the field %s and others", name)
	}
	return f
}

// suffixed reads a name or parentheses, and indices.
func (p *parser) suffixed() (e expression) {
	if p.accept("(") {
		e = p.expression(0)
		p.expect(")")
	} else {
		e = p.named()
	}
	for {
		switch {
		case p.accept("["):
			e = index{e, p.expression(0)}
			p.expect("]")
		case p.accept("."):
			e = index{e, constant{literal(p.name())}}
		case p.is(":"):
			refuse("a method is called")
		case p.is("(") || p.is("{") || p.next.kind == text:
			refuse("a value is called")
		default:
			return e
		}
	}
}

// named reads a variable or one of the functions that are known.
func (p *parser) named() expression {
	name := p.name()
	if slot, isLocal := p.find(name); isLocal {
		return slot
	}
	switch name {
	case "KEYS":
		return keys{}
	case "ARGV":
		return argv{}
	}
	for p.accept(".") {
		name += "." + p.name()
	}
	if !p.is("(") && !p.is("{") && p.next.kind != text {
		refuse("uses %s", name)
	}
	if does, ok := functions[name]; ok {
		args := p.arguments()
		if len(args) != 1 {
			refuse("%s with %d arguments", name, len(args))
		}
		return function{does, args[0]}
	}
	switch name {
	case "redis.call", "redis.pcall":
		return p.command()
	case "string.format":
		return unused{p.arguments()}
	}
	refuse("calls %s", name)
	return nil
}

func (p *parser) arguments() (args []expression) {
	switch {
	case p.next.kind == text:
		return []expression{constant{literal(p.advance().text)}}
	case p.is("{"):
		return []expression{p.table()}
	}
	p.expect("(")
	if !p.is(")") {
		args = p.expressions()
	}
	p.expect(")")
	return args
}

// command reads the arguments of redis.call. Which command it is must be seen in the text.
func (p *parser) command() expression {
	args := p.arguments()
	var first constant
	if len(args) > 0 {
		first, _ = args[0].(constant)
	}
	if first.kind != str {
		refuse("calls a command whose name is no constant")
	}
	name := strings.ToUpper(string(first.str))
	does, ok := commands[name]
	if !ok {
		refuse("%s%s", name, onWhat(args[1:]))
	}
	return &command{name: name, does: does, args: args[1:]}
}

// onWhat describes the key of a command.
func onWhat(args []expression) string {
	if len(args) > 0 {
		if i, ok := args[0].(index); ok {
			by, _ := i.by.(constant)
			if _, ok := i.of.(keys); ok && by.kind == numeric {
				return " on KEYS[" + string(by.word()) + "]"
			}
		}
	}
	return ""
}
