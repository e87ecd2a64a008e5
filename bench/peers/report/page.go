package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"strings"

	"github.com/redlock-go/redlock/bench/harness"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"num":   func(v float64) string { return fmt.Sprintf("%.0f", v) },
	"two":   func(v float64) string { return fmt.Sprintf("%.2f", v) },
	"ratio": ratio,
	"ping":  harness.OverPing,
	"ours":  func(r harness.Row) bool { return strings.HasPrefix(r.Driver, "redlock") },
	"svg":   func(f figure) template.HTML { return template.HTML(svgOnly(f.svg)) }, //nolint:gosec // drawn here
	"title": func(c harness.Cell) string { return describe(c, dimension{}) },
	"join":  func(text string) string { return strings.Join(strings.Fields(text), " ") },
	"fault": func(c harness.Cell) bool { return c.Fault != harness.NoFault },
}).Parse(pageText))

// writePage writes the page, with all plots on it.
func writePage(name string, run *harness.Run, figures []figure) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = pageTemplate.Execute(f, struct {
		*harness.Run
		Figures []figure
	}{run, figures})
	if err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// ratio compares a driver's throughput with that of the first of the group.
func ratio(g harness.Group, r harness.Row) string {
	first := g.Rows[0]
	if first.Err != nil || r.Result.PairsPerSec == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", first.Result.PairsPerSec/r.Result.PairsPerSec)
}

// svgOnly is the element without the declarations that a file begins with.
func svgOnly(file []byte) []byte {
	text := string(file)
	if at := strings.Index(text, "<svg"); at >= 0 {
		text = text[at:]
	}
	return []byte(text)
}
