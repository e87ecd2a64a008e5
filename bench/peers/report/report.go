// Package report turns a run into a page that stands alone, with its plots both
// on it and beside it as files.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/redlock-go/redlock/bench/harness"
)

// Write writes index.html, results.json, and each plot as SVG and PNG to a
// directory, which it makes if need be.
func Write(dir string, run *harness.Run) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	figures, err := figuresOf(run)
	if err != nil {
		return err
	}
	for _, f := range figures {
		if err := os.WriteFile(filepath.Join(dir, f.Name+".svg"), f.svg, 0o644); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name+".png"), f.png, 0o644); err != nil {
			return err
		}
	}
	if err := writeResults(filepath.Join(dir, "results.json"), run); err != nil {
		return err
	}
	return writePage(filepath.Join(dir, "index.html"), run, figures)
}

// figuresOf draws everything that the run has the data for.
func figuresOf(run *harness.Run) ([]figure, error) {
	var all []figure
	for _, draw := range []func(*harness.Run) ([]figure, error){matrix, distributions, timelines} {
		some, err := draw(run)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// writeResults writes all results, one object a line.
func writeResults(name string, run *harness.Run) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	out := json.NewEncoder(f)
	for _, g := range run.Groups {
		for _, row := range g.Rows {
			if row.Err != nil {
				continue
			}
			if err := out.Encode(row.Result); err != nil {
				_ = f.Close()
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return f.Close()
}
