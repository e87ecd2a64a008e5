package luascript

// statement is a node that does something. It returns what follows: see outcome.
type statement interface{ exec(r *run) outcome }

// outcome is where a statement leaves its block to.
type outcome uint8

const (
	onward   outcome = iota
	broken           // out of the loop
	returned         // with run.result
)

// block is a list of statements.
type block []statement

type (
	assignment struct {
		to   []local
		from []expression
	}
	conditional struct {
		conditions []expression
		blocks     []block
		otherwise  block
	}
	counting struct {
		of             local
		from, to, step expression
		body           block
	}
	each struct {
		index, item local
		of          expression
		body        block
	}
	leave  struct{}
	giving struct{ value expression }
	call   struct{ of expression }
)

func (b block) exec(r *run) outcome {
	for _, s := range b {
		r.step(1)
		if out := s.exec(r); out != onward {
			return out
		}
	}
	return onward
}

func (s assignment) exec(r *run) outcome {
	if len(s.from) == 1 && len(s.to) == 1 {
		r.locals[s.to[0]] = r.eval(s.from[0])
		return onward
	}
	values := make([]value, max(len(s.from), len(s.to)))
	for i, e := range s.from {
		values[i] = r.eval(e)
	}
	for i, slot := range s.to {
		r.locals[slot] = values[i]
	}
	return onward
}

func (s conditional) exec(r *run) outcome {
	for i, condition := range s.conditions {
		if r.eval(condition).isTrue() {
			return s.blocks[i].exec(r)
		}
	}
	return s.otherwise.exec(r)
}

func (s counting) exec(r *run) outcome {
	from, to, step := r.eval(s.from), r.eval(s.to), r.eval(s.step)
	for _, bound := range []value{from, to, step} {
		if bound.kind != numeric || bound.unit != known {
			refuse("a bound of a loop that is no constant")
		}
	}
	if step.num == 0 {
		refuse("a loop with a step of 0")
	}
	for i := from.num; step.num > 0 && i <= to.num || step.num < 0 && i >= to.num; i += step.num {
		r.step(1)
		r.locals[s.of] = num(i)
		if out := s.body.exec(r); out == broken {
			break
		} else if out == returned {
			return returned
		}
	}
	return onward
}

func (s each) exec(r *run) outcome {
	of := r.eval(s.of)
	if of.kind != tables || of.table.field != "" {
		refuse("a loop over what is no array")
	}
	for i, item := range of.table.items {
		r.step(1)
		r.locals[s.index], r.locals[s.item] = num(float64(i+1)), item
		if out := s.body.exec(r); out == broken {
			break
		} else if out == returned {
			return returned
		}
	}
	return onward
}

func (leave) exec(*run) outcome { return broken }

func (s giving) exec(r *run) outcome {
	r.result = r.eval(s.value)
	return returned
}

func (s call) exec(r *run) outcome {
	r.eval(s.of)
	return onward
}
