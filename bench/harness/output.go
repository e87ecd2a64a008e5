package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/redlock-go/redlock/bench/render"
	"github.com/redlock-go/redlock/bench/result"
)

// output takes results as they are measured, keeps and writes them, and has them shown.
type output struct {
	lines          []result.Line
	stdout, stderr io.Writer
	json           bool     // in place of tables
	dir            string   // or empty
	file           *os.File // in dir, or nil
	err            error    // the first of writing
}

func newOutput(opts Options, stdout, stderr io.Writer) (*output, error) {
	o := &output{stdout: stdout, stderr: stderr, json: opts.JSON, dir: opts.Out}
	if o.dir == "" {
		return o, nil
	}
	err := os.MkdirAll(o.dir, 0o755)
	if err == nil && len(opts.Render) == 0 {
		o.file, err = os.Create(filepath.Join(o.dir, "results.jsonl"))
	}
	return o, err
}

// add keeps a line and writes it.
func (o *output) add(l result.Line) {
	o.lines = append(o.lines, l)
	if o.file != nil {
		o.err = errors.Join(o.err, json.NewEncoder(o.file).Encode(l))
	}
	if o.json {
		o.err = errors.Join(o.err, json.NewEncoder(o.stdout).Encode(l))
	}
}

// begin begins a run.
func (o *output) begin(h result.Head) {
	o.add(result.Line{Head: &h})
	if !o.json {
		render.Head(o.stdout, h)
	}
}

// group shows the cell of the last n lines.
func (o *output) group(n int) {
	if o.json {
		return
	}
	head := result.Line{Head: &result.Head{}}
	for _, g := range result.Collect(append([]result.Line{head}, o.lines[len(o.lines)-n:]...))[0].Groups {
		render.Table(o.stdout, g)
	}
}

// notes shows what the last run has to be read with.
func (o *output) notes() {
	if !o.json {
		runs := result.Collect(o.lines)
		render.Notes(o.stdout, runs[len(runs)-1])
	}
}

// note keeps and shows a note.
func (o *output) note(n result.Note) {
	o.add(result.Line{Note: &n})
	if !o.json {
		render.Note(o.stdout, n)
	}
}

// fail notes that a run was not completed.
func (o *output) fail(err error) { o.add(result.Line{Failed: err.Error()}) }

// load takes results from files instead of measuring.
func (o *output) load(names []string) error {
	lines, err := result.Load(names)
	if err != nil {
		return fmt.Errorf("-render: %w", err)
	}
	o.lines = lines
	for _, run := range result.Collect(o.lines) {
		render.Head(o.stdout, run.Head)
		for _, g := range run.Groups {
			render.Table(o.stdout, g)
		}
		for _, n := range run.Found {
			render.Note(o.stdout, n)
		}
		render.Notes(o.stdout, run)
	}
	return o.pages()
}

// pages writes a summary of everything so far.
func (o *output) pages() error {
	runs := result.Collect(o.lines)
	if o.err == nil && o.dir != "" {
		o.err = render.Write(o.dir, runs)
	}
	for name, write := range map[string]func(io.Writer, []result.Line) error{"results.csv": render.CSV, "benchstat.txt": render.Benchstat} {
		if o.err == nil && o.file != nil { // beside what they are made of
			var b bytes.Buffer
			o.err = errors.Join(write(&b, o.lines), os.WriteFile(filepath.Join(o.dir, name), b.Bytes(), 0o644))
		}
	}
	return o.err
}

// Close ends the file.
func (o *output) Close() error {
	if o.file == nil {
		return o.err
	}
	return errors.Join(o.err, o.file.Close())
}

// progress reports progress.
func (o *output) progress(format string, args ...any) {
	fmt.Fprintf(o.stderr, format+"\n", args...)
}
