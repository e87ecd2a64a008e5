package luascript

import (
	"bytes"
	"math"
	"strconv"
)

// value is a value of the language, with the facts needed by the rules of soundness.
type value struct {
	kind   kind
	truth  bool   // of boolean
	unit   Kind   // of numeric: PTTL or TTLSeconds, of an unknown rest of a TTL, an addend of num
	origin origin // of str, and of numeric, whether it is in the text
	key    int    // of stored, fromKeys, and of numeric with a unit: which
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
	stored // the value of a key at the beginning
	hidden // it must decide nothing: the result of a signal
)

func (k kind) String() string {
	return [...]string{"nil", "boolean", "number", "string", "table", "string", "result that is not known"}[k]
}

// origin is the source of a string.
type origin uint8

const (
	made   origin = iota // of other values
	inText               // as it is
	fromKeys
	fromArgs
)

// known is the unit of a known number.
const known = Nil

// table is an array, or a table of one item, for a status or an error.
type table struct {
	items []value
	field string // "ok", "err" or ""
}

// array is the items of an array.
func (t *table) array() []value {
	if t.field != "" {
		return nil
	}
	return t.items
}

func truth(b bool) value     { return value{kind: boolean, truth: b} }
func num(n float64) value    { return value{kind: numeric, num: n} }
func literal(s string) value { return value{kind: str, origin: inText, str: []byte(s)} }

// oneOf is a status, "ok", or an error, "err".
func oneOf(field string, of value) value {
	return value{kind: tables, table: &table{field: field, items: []value{of}}}
}

// functions are the known functions of Lua and of Redis. They have one argument, but for
// string.format.
var functions = map[string]func(r *run, v value, more []value) value{
	"tonumber": func(_ *run, v value, _ []value) value {
		n, _ := v.toNumber()
		return n
	},
	"tostring": func(_ *run, v value, _ []value) value {
		if v.kind == numeric {
			return value{kind: str, str: v.word()}
		} else if v.kind != str && v.kind != stored && v.kind != hidden {
			refuse("tostring of a %s", v.kind)
		}
		return v
	},
	"type": func(_ *run, v value, _ []value) value {
		if v.kind == hidden {
			refuse("an unknown result is used")
		}
		return literal(v.kind.String())
	},
	"redis.status_reply": func(_ *run, v value, _ []value) value { return oneOf("ok", v) },
	"redis.error_reply": func(_ *run, v value, _ []value) value {
		if v.kind != str {
			refuse("an error that is no string")
		}
		v.str, _ = bytes.CutPrefix(v.str, []byte("-"))
		if !bytes.Contains(v.str, []byte(" ")) {
			v.str = append([]byte("ERR "), v.str...) // Redis would take it for a message without a code
		}
		return oneOf("err", v)
	},
	"string.format": func(r *run, v value, more []value) value {
		parts := bytes.Split(v.str, []byte("%s"))
		if v.origin != inText || len(parts) != 1+len(more) || bytes.Count(v.str, []byte("%")) != len(more) {
			refuse("string.format of more than a %%s for each argument")
		}
		all := value{kind: str, str: parts[0]}
		for i, arg := range more {
			all = join(r, join(r, all, arg), value{kind: str, str: parts[i+1]})
		}
		return all
	},
}

func (v value) isTrue() bool {
	if v.kind == hidden {
		refuse("an unknown result decides what is done")
	}
	return v.kind != null && (v.kind != boolean || v.truth)
}

// parseNumber reads a decimal number as Lua does. It refuses other forms of Lua.
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

// toNumber returns v, or the number in a string. Without one it is nil and false, as in Lua.
func (v value) toNumber() (n value, ok bool) {
	switch v.kind {
	case numeric:
		return v, true
	case str:
		if n, ok := parseNumber(v.str); ok {
			return num(n), true
		}
	case stored:
		refuse("the value at the key is used as a number")
	case hidden:
		refuse("an unknown result is used")
	}
	return value{}, false
}

// number returns v as an operand of arithmetic, constant as one of an operation on known numbers.
func (v value) number() value {
	n, ok := v.toNumber()
	if !ok {
		refuse("arithmetic on what is no number")
	}
	return n
}

func (v value) constant() float64 {
	n := v.number()
	if n.unit != known {
		refuse("the rest of the TTL is subtracted or multiplied")
	}
	return n.num
}

// integer returns v as an integer for a command, and the unit of its unknown addend.
func (v value) integer(what string) (int64, Kind) {
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

// hasWord reports whether v, no table, is known as a part of a longer string.
func (v value) hasWord() bool {
	return v.kind == str || v.kind == numeric && v.unit == known && v.num == math.Trunc(v.num) && math.Abs(v.num) < 1e14
}

// word returns v as a part of a longer string.
func (v value) word() []byte {
	switch {
	case v.kind == stored:
		refuse("the value at the key is joined with another string")
	case v.kind == numeric && !v.hasWord():
		refuse("a number that is no constant becomes a string")
	case !v.hasWord():
		refuse("a %s becomes a string", v.kind)
	case v.kind == numeric:
		return strconv.AppendInt(nil, int64(v.num), 10)
	}
	return v.str
}
