package luascript

import "bytes"

// functions are those of Lua and of Redis that are known; each has one argument.
var functions = map[string]func(value) value{
	"tonumber": func(v value) value {
		switch v.kind {
		case numeric:
			return v
		case str:
			if n, ok := parseNumber(v.str); ok {
				return num(n)
			}
		case stored, hidden:
			return v.number() // refuses it
		}
		return value{}
	},
	"tostring": func(v value) value {
		switch v.kind {
		case str, stored, hidden:
			return v
		case numeric:
			return value{kind: str, origin: made, str: v.word()}
		}
		refuse("tostring of a %s", v.kind)
		return v
	},
	"type": func(v value) value {
		if v.kind == hidden {
			refuse("an unknown result is used")
		}
		return literal(v.kind.String())
	},
	"redis.status_reply": func(v value) value {
		return value{kind: tables, table: &table{field: "ok", of: v}}
	},
	"redis.error_reply": func(v value) value {
		if v.kind != str {
			refuse("an error that is no string")
		}
		message, _ := bytes.CutPrefix(v.str, []byte("-"))
		return value{kind: tables, table: &table{field: "err", of: value{kind: str, str: message}}}
	},
}
