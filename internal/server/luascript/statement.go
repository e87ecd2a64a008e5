package luascript

// statement does something. It reports whether the script has returned, with run.result.
type statement func(r *run) (returned bool)

// block reads statements up to a keyword that ends them, in a scope with the given loop variables.
func (p *parser) block(variables ...string) statement {
	defer p.deeper()()
	p.scopes = append(p.scopes, map[string]int{})
	defer func() { p.scopes = p.scopes[:len(p.scopes)-1] }()
	p.declare(variables)
	var all []statement
	for isLast := false; !p.isAtEnd() && !isLast; {
		isLast = p.is("return")
		all = append(all, p.statement())
		p.accept(";")
	}
	return func(r *run) bool {
		for _, s := range all {
			r.step(1)
			if s(r) {
				return true
			}
		}
		return false
	}
}

func (p *parser) statement() (s statement) {
	switch {
	case p.next.kind == name:
		return p.callOrAssignment()
	case p.accept("local"):
		names, from := listOf(p, p.name), []expression{constant(value{})}
		if p.accept("=") {
			from = listOf(p, p.whole)
		}
		return assignment(p.declare(names), from) // in scope from here on
	case p.accept("if"):
		return p.conditional()
	case p.accept("for"):
		return p.loop()
	case p.accept("do"):
		s = p.block()
		p.expect("end")
		return s
	case p.accept("return"):
		e := constant(value{})
		if !p.isAtEnd() && !p.is(";") {
			e = p.whole()
		}
		if p.is(",") {
			refuse("more than one value is returned")
		}
		return func(r *run) bool {
			r.result = r.eval(e)
			return true
		}
	case p.next.kind == keyword:
		refuse("the statement %s", p.next.text)
	}
	p.unexpected()
	return nil
}

func assignment(to []int, from []expression) statement {
	return func(r *run) bool {
		values := r.all(from)
		for i, slot := range to {
			r.locals[slot] = (value{})
			if i < len(values) {
				r.locals[slot] = values[i]
			}
		}
		return false
	}
}

func (p *parser) callOrAssignment() statement {
	before := p.lexer
	names := listOf(p, p.name)
	if _, isLocal := p.find(names[0]); !isLocal && !p.is("=") && len(names) == 1 {
		p.lexer = before
		e, isCall := p.named(true)
		if !isCall {
			refuse("a statement that does nothing")
		}
		return func(r *run) bool {
			r.eval(e)
			return false
		}
	}
	var to []int
	for _, name := range names {
		slot, isLocal := p.find(name)
		to = append(to, slot)
		if !isLocal {
			refuse("assigns to %s, which is no local variable", name)
		}
	}
	if !p.accept("=") {
		refuse("a local variable is called, or a part of it assigned")
	}
	return assignment(to, listOf(p, p.whole))
}

func (p *parser) conditional() statement {
	condition := p.whole()
	p.expect("then")
	then, otherwise := p.block(), statement(func(*run) bool { return false })
	if p.accept("elseif") {
		defer p.deeper()()
		otherwise = p.conditional()
	} else {
		if p.accept("else") {
			otherwise = p.block()
		}
		p.expect("end")
	}
	return func(r *run) bool {
		if r.eval(condition).isTrue() {
			return then(r)
		}
		return otherwise(r)
	}
}

func (p *parser) loop() statement {
	names := listOf(p, p.name)
	var bounds func(r *run) (from, to float64, items []value)
	switch {
	case len(names) == 1 && p.accept("="):
		first := p.whole()
		p.expect(",")
		last := p.whole()
		bounds = func(r *run) (float64, float64, []value) {
			from, to := r.eval(first), r.eval(last)
			if from.kind != numeric || to.kind != numeric || from.unit != known || to.unit != known {
				refuse("a bound of a loop that is no constant")
			}
			return from.num, to.num, nil
		}
	case len(names) == 2:
		p.expect("in")
		if iterator := p.name(); iterator != "ipairs" && iterator != "pairs" {
			refuse("a loop over %s", iterator)
		}
		p.open()
		of := p.whole()
		p.expect(")")
		bounds = func(r *run) (float64, float64, []value) {
			all := r.eval(of)
			if all.kind != tables || all.table.field != "" {
				refuse("a loop over what is no array")
			}
			return 1, float64(len(all.table.items)), all.table.items
		}
	default:
		p.unexpected()
	}
	p.expect("do")
	slot := p.slots
	body := p.block(names...)
	p.expect("end")
	return func(r *run) bool {
		i, to, items := bounds(r)
		for ; i <= to; i++ {
			r.step(1)
			r.locals[slot] = num(i)
			if len(names) == 2 {
				r.locals[slot+1] = items[int(i)-1]
			}
			if body(r) {
				return true
			}
		}
		return false
	}
}
