package luascript

import (
	"bytes"
	"math"
	"strconv"
)

// value is a value of the language, with what the rules of soundness need to know about it.
type value struct {
	kind   kind
	truth  bool   // of boolean; of hidden: it is 1 where something was done
	unit   unit   // of numeric: of an unknown rest of a TTL that is added to num
	origin origin // of str
	key    int    // of stored, and of numeric with a unit: which key
	num    float64
	str    []byte
	table  *table
}

type kind uint8

const (
	null kind = iota
	boolean
	numeric
	str
	tables
	stored // the value that a key held at the beginning
	hidden // what must decide nothing: the result of a signal
)

// origin is where a string comes from.
type origin uint8

const (
	constants origin = iota
	made             // of other values
	fromKeys
	fromArgs
)

// unit is the unit of an unknown number: what is left of a TTL.
type unit uint8

const (
	known unit = iota
	milliseconds
	seconds
)

// table is an array, or one of the two tables that stand for a status and an error.
type table struct {
	items []value
	field string // "ok", "err" or ""
	of    value  // the value of the field
}

var (
	yes = value{kind: boolean, truth: true}
	no  = value{kind: boolean}
)

func truth(b bool) value     { return value{kind: boolean, truth: b} }
func num(n float64) value    { return value{kind: numeric, num: n} }
func literal(s string) value { return value{kind: str, str: []byte(s)} }
func status(s string) value  { return value{kind: tables, table: &table{field: "ok", of: literal(s)}} }
func count(holds bool) value { return num(map[bool]float64{true: 1}[holds]) }

func (v value) isTrue() bool {
	if v.kind == hidden {
		refuse("an unknown result decides what is done")
	}
	return v.kind != null && (v.kind != boolean || v.truth)
}

// parseNumber reads a decimal number as Lua does. It refuses those that Lua reads and it does not.
func parseNumber(b []byte) (float64, bool) {
	b = bytes.Trim(b, " \t\r\n\v\f")
	digits := bytes.TrimLeft(b, "+-")
	if len(digits) > 0 && (digits[0]|0x20 == 'i' || digits[0]|0x20 == 'n') ||
		len(digits) > 1 && digits[0] == '0' && digits[1]|0x20 == 'x' {
		refuse("a number that is not decimal")
	}
	if bytes.IndexByte(b, '_') >= 0 || len(b) > 64 {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(b), 64)
	return n, err == nil
}

// number returns v as an operand of arithmetic; strings are converted, as in Lua.
func (v value) number() value {
	switch v.kind {
	case numeric:
		return v
	case str:
		if n, ok := parseNumber(v.str); ok {
			return num(n)
		}
	case stored:
		refuse("the value at the key is used as a number")
	case hidden:
		refuse("an unknown result is used")
	}
	refuse("arithmetic on what is no number")
	return value{}
}

// arithmetic adds, and so on. To an unknown rest of a TTL only a number can be added.
func arithmetic(sign string, a, b value) value {
	switch {
	case sign == "+" && (a.unit == known || b.unit == known):
		if b.unit != known {
			a, b = b, a
		}
		a.num += b.num
		return a
	case b.unit == known && sign == "-":
		a.num -= b.num
		return a
	case a.unit != known || b.unit != known:
		refuse("the rest of the TTL is subtracted or multiplied")
	}
	switch sign {
	case "-":
		return num(a.num - b.num)
	case "*":
		return num(a.num * b.num)
	case "/":
		return num(a.num / b.num)
	}
	return num(a.num - math.Floor(a.num/b.num)*b.num)
}

// integer returns v as an integer that a command takes, and the unit of the unknown that is added to it.
func (v value) integer(what string) (int64, unit) {
	switch v.kind {
	case numeric:
		if v.num == math.Trunc(v.num) && math.Abs(v.num) < 1<<53 {
			return int64(v.num), v.unit
		}
	case str:
		// Redis takes the shortest form alone.
		if n, err := strconv.ParseInt(string(v.str), 10, 64); err == nil && strconv.FormatInt(n, 10) == string(v.str) {
			return n, known
		}
	}
	refuse("%s is no integer", what)
	return 0, known
}

// word returns v as a part of a longer string.
func (v value) word() []byte {
	switch v.kind {
	case str:
		return v.str
	case numeric:
		if v.unit == known && v.num == math.Trunc(v.num) && math.Abs(v.num) < 1e14 {
			return strconv.AppendInt(nil, int64(v.num), 10)
		}
		refuse("a number that is no constant becomes a string")
	case stored:
		refuse("the value at the key is joined with another string")
	case hidden:
		refuse("an unknown result is used")
	}
	refuse("a %s becomes a string", v.kind)
	return nil
}

func (k kind) String() string {
	return [...]string{"nil", "boolean", "number", "string", "table", "string", "unknown result"}[k]
}

// at returns the item i of an array, and nil past its end.
func (t *table) at(i float64) value {
	if i >= 1 && i <= float64(len(t.items)) && i == math.Trunc(i) {
		return t.items[int(i)-1]
	}
	return value{}
}
