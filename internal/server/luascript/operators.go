package luascript

import (
	"bytes"
	"math"
)

// unary are the operators of one operand, binary those of two; "and" and "or" may need the first
// alone.
var (
	unary = map[string]func(v value) value{
		"not": func(v value) value { return truth(!v.isTrue()) }, "-": negation, "#": length,
	}
	binary = map[string]struct {
		priority, isRight int // 1: it binds to the right
		does              func(r *run, a, b value) value
	}{
		"or": {1, 0, last}, "and": {2, 0, last},
		"==": {3, 0, func(r *run, a, b value) value { return truth(r.equal(a, b)) }},
		"~=": {3, 0, func(r *run, a, b value) value { return truth(!r.equal(a, b)) }},
		"<":  {3, 0, func(r *run, a, b value) value { return truth(less(a, b, false)) }},
		"<=": {3, 0, func(r *run, a, b value) value { return truth(less(a, b, true)) }},
		">":  {3, 0, func(r *run, a, b value) value { return truth(less(b, a, false)) }},
		">=": {3, 0, func(r *run, a, b value) value { return truth(less(b, a, true)) }},
		"..": {4, 1, join},
		"+":  {5, 0, func(_ *run, a, b value) value { return sum(a.number(), b.number()) }},
		"-":  {5, 0, func(_ *run, a, b value) value { return sum(a.number(), negation(b)) }},
		"*":  {6, 0, of(func(a, b float64) float64 { return a * b })},
		"/":  {6, 0, of(func(a, b float64) float64 { return a / b })},
		"%":  {6, 0, of(func(a, b float64) float64 { return a - math.Floor(a/b)*b })},
	}
)

func last(_ *run, _, b value) value { return b }

// of is an operation on known numbers.
func of(does func(a, b float64) float64) func(r *run, a, b value) value {
	return func(_ *run, a, b value) value { return num(does(a.constant(), b.constant())) }
}

// sum adds. An unknown rest of a TTL takes only a number as addend.
func sum(a, b value) value {
	if b.unit != known {
		a, b = b, a
	}
	a.num, a.origin = a.num+b.constant(), made
	return a
}

func negation(v value) value { return num(-v.constant()) }

func join(r *run, a, b value) value {
	joined := bytes.Join([][]byte{a.word(), b.word()}, nil)
	r.step(len(joined))
	return value{kind: str, str: joined}
}

func length(v value) value {
	switch v.kind {
	case str:
		return num(float64(len(v.str)))
	case tables:
		return num(float64(len(v.table.array())))
	}
	refuse("the length of a value that is not known")
	return value{}
}

func index(of, by value) value {
	switch {
	case of.kind != tables:
		refuse("an index of what is no table")
	case by.kind == numeric && by.unit == known:
		if i, items := int(by.num), of.table.array(); i >= 1 && i <= len(items) && float64(i) == by.num {
			return items[i-1]
		}
	case by.kind != str || by.origin != inText:
		refuse("an index that is no constant")
	case of.table.field != "" && of.table.field == string(by.str):
		return of.table.items[0]
	}
	return value{}
}

// equal compares as Lua does. It also finds the argument that is the token.
func (r *run) equal(a, b value) bool {
	if b.kind == stored {
		a, b = b, a
	}
	switch {
	case a.kind == hidden || b.kind == hidden:
		refuse("an unknown result is compared")
	case a.kind == stored && b.kind == stored:
		if a.key != b.key {
			refuse("the values at two keys are compared")
		}
		return true
	case a.kind == stored && b.kind != null && b.kind != boolean:
		if b.kind != str || b.origin == inText {
			refuse("the value at the key is compared with a constant")
		} else if b.origin != fromArgs {
			refuse("the value at the key is compared with what is no argument of the call")
		}
		return r.isToken(a.key, b.str)
	case a.kind != b.kind:
		return false
	case a.kind == numeric:
		return less(a, b, true) && less(b, a, true)
	case a.kind == str:
		return bytes.Equal(a.str, b.str)
	case a.kind == tables:
		refuse("tables are compared")
	}
	return a.truth == b.truth
}

// less reports whether a < b, or a <= b. An unknown rest of a TTL is at least 1 ms, 0 s in Redis, and has no upper
// bound. less refuses if the result depends on the rest.
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
	if v.unit == PTTL {
		return v.num + 1
	}
	return v.num
}
