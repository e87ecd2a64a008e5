package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestMatrixIsKept: what is written is read back, but for defects and functions that have changed.
func TestMatrixIsKept(t *testing.T) {
	ran := reach{Result: "PASS"}
	a, b, c := &function{dir: "p", name: "TestA", hash: "1", reach: ran}, &function{dir: "p", name: "TestB", hash: "2", reach: ran}, &function{dir: "q", name: "TestC", hash: "3", reach: ran}
	d := &function{dir: "q", name: "TestD", hash: "4", reach: ran}
	fresh := func() *matrix {
		return &matrix{
			functions: []*function{a, b, c, d},
			hashes:    map[string]string{"x": "8", "y": "9"},
			reached:   map[cell]bool{{"x", a}: true, {"x", b}: true, {"x", c}: true, {"x", d}: true, {"y", a}: true, {"y", d}: true},
			kills:     map[cell]bool{},
		}
	}
	m := fresh()
	m.kills = map[cell]bool{{"x", a}: true, {"x", b}: false, {"x", c}: false, {"y", a}: false}
	assert.Equal(t, " * +TestA", m.row("x", []*function{a, b}))
	assert.Equal(t, " -TestC", m.row("x", []*function{c, d}), "of TestD nothing is known")
	assert.Equal(t, " *", m.row("y", []*function{a, b}), "TestB does not reach it")
	assert.Empty(t, m.row("y", []*function{c, d}))
	text := m.text()

	same := fresh()
	same.load(text)
	assert.Equal(t, m.kills, same.kills)
	assert.Equal(t, text, same.text())

	changed := fresh()
	changed.hashes["y"] = "another"
	a.hash = "another"
	changed.load(text)
	assert.Equal(t, map[cell]bool{{"x", b}: false, {"x", c}: false}, changed.kills)
}
