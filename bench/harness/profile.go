package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strconv"

	"github.com/redlock-go/redlock/bench/result"
)

// profile has the CPU time of this process written to a file, if it is named, until stop.
func profile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	stop = func() error { pprof.StopCPUProfile(); return f.Close() }
	return stop, pprof.StartCPUProfile(f)
}

// focused measures a cell, and the share of its CPU in stacks with a function that matches, if one is given. The profile is read
// by go tool pprof; without it the share is not known.
func focused(ctx context.Context, function string, measure func() (result.Result, error)) (r result.Result, err error) {
	if function == "" {
		return measure()
	}
	dir, err := os.MkdirTemp("", "bench-focus-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "profile")
	stop, err := profile(name)
	if err != nil {
		return r, err
	}
	if r, err = measure(); err != nil {
		return r, err
	}
	if err := stop(); err != nil {
		return r, err
	}
	if top, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodefraction=0", "-nodecount=100000", "-focus="+function, name).Output(); err == nil {
		r.FocusShare = shareOf(top)
	}
	return r, nil
}

// showing is the line about all stacks that a table of go tool pprof shows.
var showing = regexp.MustCompile(`Showing nodes accounting for \S+ ([0-9.]+)% of `)

// shareOf is their share of the profile.
func shareOf(top []byte) float64 {
	m := showing.FindSubmatch(top)
	if m == nil {
		return 0
	}
	share, _ := strconv.ParseFloat(string(m[1]), 64)
	return round(share / 100)
}
