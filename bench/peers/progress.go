package main

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/redlock-go/redlock/bench/harness"
)

// progress is a bar, where there is somebody to look at it.
type progress struct {
	bar   *progressbar.ProgressBar
	begun bool
}

func newProgress(w io.Writer, steps int) harness.Progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		w = io.Discard
	}
	return &progress{bar: progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionFullWidth(),
	)}
}

// Step implements [harness.Progress]: what comes next, so the one before is
// done.
func (p *progress) Step(what string) {
	p.bar.Describe(what)
	if p.begun {
		_ = p.bar.Add(1)
	}
	p.begun = true
}

// Clear implements [harness.Progress].
func (p *progress) Clear() { _ = p.bar.Clear() }
