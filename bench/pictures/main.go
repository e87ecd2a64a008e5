// Command pictures draws what the benchmark has recorded: a picture for each section of results.jsonl whose cells
// differ. With -dashboard it also draws the dashboard of bench/metrics, of a client that works for a minute.
//
//	go run . -o ../results -dashboard /tmp/figures.jsonl
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/redlock-go/redlock/bench/render"
	"github.com/redlock-go/redlock/bench/result"
)

func main() {
	dir := flag.String("o", ".", "write the pictures to `directory`")
	isDashboard := flag.Bool("dashboard", false, "draw ../metrics/grafana.json too, which takes a minute")
	flag.Parse()
	pictures := map[string][]byte{}
	lines, err := result.Load(flag.Args())
	for _, run := range result.Collect(lines) {
		if c := render.NewChart(run); c != nil {
			pictures[c.File] = drawChart(c)
		}
	}
	if *isDashboard && err == nil {
		var r *recording
		if r, err = record(); err == nil {
			pictures["dashboard.svg"], err = drawDashboard(r)
		}
	}
	for name, svg := range pictures {
		if err == nil {
			err = os.WriteFile(filepath.Join(*dir, name), svg, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}
