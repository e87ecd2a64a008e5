//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

func TestMain(m *testing.M) {
	child.Serve(userEnv, serve)
	os.Exit(m.Run())
}

// TestJudge: readers may be together; nothing may be beside a writer, also where others have begun or ended meanwhile.
func TestJudge(t *testing.T) {
	const r, w = "reader", "writer"
	type span struct {
		mode        string
		first, last int
	}
	for name, c := range map[string]struct {
		spans    []span
		overlaps int
	}{
		"readers":                       {[]span{{r, 1, 9}, {r, 2, 3}, {r, 3, 12}}, 0},
		"one after another":             {[]span{{w, 1, 2}, {r, 3, 9}, {w, 10, 11}, {w, 12, 12}}, 0},
		"two writers":                   {[]span{{w, 1, 5}, {w, 5, 6}}, 1},
		"a reader beside a writer":      {[]span{{w, 1, 5}, {r, 4, 9}}, 1},
		"a writer beside a reader":      {[]span{{r, 1, 9}, {w, 4, 5}}, 1},
		"a long reader, another, write": {[]span{{r, 1, 9}, {r, 2, 3}, {w, 8, 8}}, 1},
		"a long writer, two readers":    {[]span{{w, 1, 9}, {r, 2, 3}, {r, 4, 5}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJudge()
			for i, s := range c.spans {
				j.hear(byOurs, fmt.Sprintf("held 0 %d %s %d", i, s.mode, s.first))
				j.hear(byOurs, fmt.Sprintf("held 1 %d %s %d", i, r, s.first)) // another key
				j.hear(byOurs, fmt.Sprintf("held 0 %d %s %d", i, s.mode, s.last))
			}
			require.Equal(t, c.overlaps > 0, j.verdict() != nil)
			require.Len(t, j.overlaps, c.overlaps)
		})
	}
}

// TestTrial: locks exclude each other through faults, and a process that ignores the others is found.
func TestTrial(t *testing.T) {
	d := 5 * time.Second
	if os.Getenv("REDLOCK_LONG") == "1" {
		d = 12 * time.Minute
	}
	for name, c := range map[string]struct {
		forgetful bool
		broken    string
	}{"persistent": {}, "forgetful": {forgetful: true}, "writer": {broken: "writer"}, "reader": {broken: "reader"}} {
		t.Run(name, func(t *testing.T) {
			run := trial{forgetful: c.forgetful, judge: newJudge(), faults: map[string]int{}}
			d := d
			if c.broken != "" {
				d = 5 * time.Second
			}
			err := run.run(d, 2, c.broken, c.broken == "")
			if errors.Is(err, realredis.ErrNoServer) && os.Getenv(realredis.EnvRequire) != "1" {
				t.Skip(err)
			}
			t.Log(run.report())
			require.Equal(t, c.broken != "", len(run.judge.overlaps) > 0)
			if c.broken == "" {
				require.NoError(t, err)
			}
			require.Positive(t, run.judge.kinds["redlock reader"])
			require.Positive(t, run.judge.kinds["redlock writer"])
		})
	}
}
