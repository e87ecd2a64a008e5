package luascript

import "bytes"

// expression is a node that has a value.
type expression interface{ eval(r *run) value }

type (
	constant struct{ value }
	local    int // a slot of run.locals
	keys     struct{}
	argv     struct{}
	index    struct{ of, by expression }
	length   struct{ of expression }
	negation struct{ of expression }
	inverse  struct{ of expression }
	logic    struct {
		isOr        bool
		left, right expression
	}
	operation struct { // + - * / % .. and comparisons
		sign        string
		left, right expression
	}
	array struct{ items []expression }
	field struct { // {ok = …}, {err = …}
		name string
		of   expression
	}
	function struct { // tonumber and so on
		does func(value) value
		of   expression
	}
	unused struct{ args []expression } // string.format: for messages
)

func (e constant) eval(*run) value { return e.value }
func (e local) eval(r *run) value  { return r.locals[e] }
func (keys) eval(r *run) value     { return value{kind: tables, table: &r.keysTable} }
func (argv) eval(r *run) value     { return value{kind: tables, table: &r.argvTable} }

func (e index) eval(r *run) value {
	of, by := r.eval(e.of), r.eval(e.by)
	switch {
	case of.kind != tables:
		refuse("an index of what is no table")
	case by.kind == numeric && by.unit == known:
		return of.table.at(by.num)
	case by.kind == str && by.origin == constants:
		if of.table.field != "" && of.table.field == string(by.str) {
			return of.table.of
		}
		return value{}
	}
	refuse("an index that is no constant")
	return value{}
}

func (e length) eval(r *run) value {
	switch of := r.eval(e.of); of.kind {
	case str:
		return num(float64(len(of.str)))
	case tables:
		return num(float64(len(of.table.items)))
	}
	refuse("the length of a value that is not known")
	return value{}
}

func (e negation) eval(r *run) value {
	n := r.eval(e.of).number()
	if n.unit != known {
		refuse("the rest of the TTL is subtracted")
	}
	return num(-n.num)
}

func (e inverse) eval(r *run) value { return truth(!r.eval(e.of).isTrue()) }

func (e logic) eval(r *run) value {
	left := r.eval(e.left)
	if left.isTrue() == e.isOr {
		return left
	}
	return r.eval(e.right)
}

func (e array) eval(r *run) value {
	t := &table{}
	for _, item := range e.items {
		v := r.eval(item)
		if v.kind == null {
			// Where a nil stands in a table decides what Lua takes for its length.
			refuse("nil in a table")
		}
		t.items = append(t.items, v)
	}
	return value{kind: tables, table: t}
}

func (e field) eval(r *run) value {
	return value{kind: tables, table: &table{field: e.name, of: r.eval(e.of)}}
}

func (e function) eval(r *run) value { return e.does(r.eval(e.of)) }

func (e unused) eval(r *run) value {
	for _, arg := range e.args {
		r.eval(arg)
	}
	return value{kind: hidden}
}

func (e operation) eval(r *run) value {
	left, right := r.eval(e.left), r.eval(e.right)
	switch e.sign {
	case "==":
		return truth(r.equal(left, right))
	case "~=":
		return truth(!r.equal(left, right))
	case "<":
		return truth(less(left, right, false))
	case "<=":
		return truth(less(left, right, true))
	case ">":
		return truth(less(right, left, false))
	case ">=":
		return truth(less(right, left, true))
	case "..":
		joined := bytes.Join([][]byte{left.word(), right.word()}, nil)
		r.step(len(joined))
		return value{kind: str, origin: made, str: joined}
	}
	return arithmetic(e.sign, left.number(), right.number())
}

// equal compares as Lua does. Here it is learned which argument is the token.
func (r *run) equal(a, b value) bool {
	if b.kind == stored {
		a, b = b, a
	}
	switch {
	case a.kind == hidden || b.kind == hidden:
		refuse("an unknown result is compared")
	case a.kind == stored:
		switch {
		case b.kind == stored && b.key == a.key:
			return true
		case b.kind == stored:
			refuse("the values at two keys are compared")
		case b.kind == null || b.kind == boolean:
			return false
		case b.kind != str || b.origin == constants:
			refuse("the value at the key is compared with a constant")
		case b.origin != fromArgs:
			refuse("the value at the key is compared with what is no argument of the call")
		}
		return r.isToken(a.key, b.str)
	case a.kind != b.kind:
		return false
	case a.kind == numeric:
		if a.unit == b.unit && (a.unit == known || a.key == b.key) {
			return a.num == b.num
		}
		return !less(a, b, false) && !less(b, a, false)
	case a.kind == str:
		return bytes.Equal(a.str, b.str)
	case a.kind == tables:
		refuse("tables are compared")
	}
	return a.truth == b.truth
}

// less reports whether a < b, or a <= b. An unknown rest of a TTL is at least 1 ms, of which Redis
// makes 0 s, and has no upper bound: where the result depends on it there is none.
func less(a, b value, orEqual bool) bool {
	if a.kind != numeric || b.kind != numeric {
		refuse("values that are no numbers are ordered")
	}
	switch {
	case a.unit == b.unit && (a.unit == known || a.key == b.key):
		return a.num < b.num || orEqual && a.num == b.num
	case a.unit == known && (a.num < least(b) || orEqual && a.num == least(b)):
		return true
	case b.unit == known && (least(a) > b.num || !orEqual && least(a) == b.num):
		return false
	}
	refuse("what is done depends on how much is left of the TTL")
	return false
}

func least(v value) float64 {
	if v.unit == milliseconds {
		return v.num + 1
	}
	return v.num
}
