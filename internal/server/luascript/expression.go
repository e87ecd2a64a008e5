package luascript

import (
	"regexp"
	"slices"
	"strings"
)

// expression makes a value.
type expression func(r *run) value

func constant(v value) expression { return func(*run) value { return v } }

const ofUnary = 7

// whole reads an expression, and expression only operators of a higher priority than above.
func (p *parser) whole() expression { return p.expression(0) }

func (p *parser) expression(above int) (left expression) {
	defer p.deeper()()
	if does := unary[p.next.text]; does != nil && p.is(p.next.text) {
		p.advance()
		of := p.expression(ofUnary)
		left = func(r *run) value { return does(r.eval(of)) }
	} else {
		left = p.simple()
	}
	for {
		sign := p.next.text
		o := binary[sign]
		if o.priority <= above || !p.is(sign) {
			return left
		}
		p.advance()
		first, second := left, p.expression(o.priority-o.isRight)
		left = func(r *run) value {
			a := r.eval(first)
			if (sign == "and" || sign == "or") && a.isTrue() == (sign == "or") {
				return a
			}
			return o.does(r, a, r.eval(second))
		}
	}
}

var constants = map[string]value{"nil": {}, "true": truth(true), "false": truth(false)}

func (p *parser) simple() expression {
	switch {
	case p.next.kind == number:
		word := p.advance().text
		n, ok := parseNumber([]byte(word))
		if !ok {
			refuse("%q is no decimal number", word)
		}
		return constant(value{kind: numeric, origin: inText, num: n})
	case p.next.kind == text:
		return constant(literal(p.advance().text))
	case p.is("nil", "true", "false"):
		return constant(constants[p.advance().text])
	case p.is("{"):
		return p.table()
	}
	return p.suffixed()
}

// table reads an array, or the table of a status or an error: {ok = …}, {err = …}.
func (p *parser) table() expression {
	p.expect("{")
	var items []expression
	field := ""
	for isLast := false; !p.is("}") && !isLast; {
		if before := p.lexer; p.next.kind == name {
			field = p.name()
			if !p.accept("=") {
				p.lexer, field = before, ""
			}
		}
		items = append(items, p.whole())
		if _, isKind := kinds[field]; !isKind || field != "" && (len(items) > 1 || !p.is("}")) {
			refuse("a table with the field %s, and not as a status or an error alone", field)
		}
		isLast = !p.accept(",") && !p.accept(";")
	}
	p.expect("}")
	return func(r *run) value {
		t := &table{items: slices.Clone(r.all(items)), field: field}
		if slices.ContainsFunc(t.array(), func(v value) bool { return v.kind == null }) {
			// In Lua the position of a nil decides the length of a table.
			refuse("nil in a table")
		}
		return value{kind: tables, table: t}
	}
}

// suffixed reads a name or parentheses, and indices.
func (p *parser) suffixed() (e expression) {
	if p.accept("(") {
		e = p.whole()
		p.expect(")")
	} else {
		e, _ = p.named(false)
	}
	for {
		of, by := e, expression(nil)
		switch {
		case p.accept("["):
			by = p.whole()
			p.expect("]")
		case p.accept("."):
			by = constant(literal(p.name()))
		case p.is(":"):
			refuse("a method is called")
		case p.is("(", "{") || p.next.kind == text:
			refuse("a value is called")
		default:
			return e
		}
		e = func(r *run) value { return index(r.eval(of), r.eval(by)) }
	}
}

// named reads a variable, or a call of a known function. isUnused: the result is.
func (p *parser) named(isUnused bool) (e expression, isCall bool) {
	name := p.name()
	switch slot, isLocal := p.find(name); {
	case isLocal:
		return func(r *run) value { return r.locals[slot] }, false
	case name == "KEYS":
		return func(r *run) value { return value{kind: tables, table: &r.keysTable} }, false
	case name == "ARGV":
		return func(r *run) value { return value{kind: tables, table: &r.argvTable} }, false
	}
	for p.accept(".") {
		name += "." + p.name()
	}
	if !p.is("(", "{") && p.next.kind != text {
		refuse("uses %s", name)
	}
	if name == "redis.call" || name == "redis.pcall" {
		return p.command(isUnused), true
	}
	does, isKnown := functions[name]
	if !isKnown {
		refuse("calls %s", name)
	}
	args := p.arguments()
	if len(args) != 1 && (name != "string.format" || len(args) == 0) {
		refuse("%s with %d arguments", name, len(args))
	}
	return func(r *run) value {
		values := r.all(args)
		return does(r, values[0], values[1:])
	}, true
}

func (p *parser) arguments() (args []expression) {
	switch {
	case p.next.kind == text:
		return []expression{constant(literal(p.advance().text))}
	case p.is("{"):
		return []expression{p.table()}
	}
	p.open()
	if !p.is(")") {
		args = listOf(p, p.whole)
	}
	p.expect(")")
	return args
}

// open reads the parenthesis of a call. Lua 5.1 wants it on the line of the function.
func (p *parser) open() {
	if p.next.isFirst {
		p.unexpected()
	}
	p.expect("(")
}

// member is a common argument of commands: the text of a refusal shows it.
var member = regexp.MustCompile(`^\s*KEYS\[\d{1,9}\]`)

// command reads the arguments of redis.call. Its command must be visible in the text.
func (p *parser) command(isUnused bool) expression {
	p.open()
	first := p.advance()
	if first.kind != text || !p.is(",", ")") {
		refuse("calls a command whose name is no constant")
	}
	name := strings.ToUpper(first.text)
	c, isKnown := commands[name]
	if key := strings.TrimSpace(member.FindString(p.rest)); !isKnown && p.is(",") && key != "" {
		refuse("%s on %s", name, key)
	} else if !isKnown {
		refuse("%s", name)
	}
	var args []expression
	if p.accept(",") {
		args = listOf(p, p.whole)
	}
	p.expect(")")
	return func(r *run) value { return r.call(name, c, args, isUnused) }
}
