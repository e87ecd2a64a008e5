package render

import (
	"bytes"
	_ "embed"
	"errors"
	"html/template"
	"os"
	"path/filepath"
	"strings"

	"github.com/redlock-go/redlock/bench/result"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"ours":    ours,
	"title":   Title,
	"ping":    ping,
	"servers": servers,
	"method":  method,
	"columns": columns,
	"name":    name,
	"reason":  reason,
	"oneline": oneLine,
	"figures": figuresOf,
	"svg":     func(p *plot) template.HTML { return template.HTML(p.SVG()) }, //nolint:gosec // drawn here
}).Parse(pageText))

// page is the data of the template.
type page struct {
	Sheet template.CSS
	First result.Head
	Runs  []pageRun
	Notes []string
}

type pageRun struct {
	*result.Run
	Plots []*plot
}

// Write writes summary.md, index.html, which stands alone, and each plot as SVG
// to a directory.
func Write(dir string, runs []*result.Run) error {
	if len(runs) == 0 {
		return nil
	}
	var summary, html bytes.Buffer
	summarize(&summary, runs)
	p := page{Sheet: template.CSS(sheet()), First: runs[0].Head, Notes: notes(runs)} //nolint:gosec // made here
	var errs []error
	for _, run := range runs {
		all := plots(run)
		p.Runs = append(p.Runs, pageRun{run, all})
		for _, one := range all {
			alone := strings.Replace(one.SVG(), ">\n", "><style>\n"+sheet()+"</style>\n", 1)
			errs = append(errs, os.WriteFile(filepath.Join(dir, slug(run.Section+" "+one.Name)+".svg"), []byte(alone), 0o644))
		}
	}
	errs = append(errs, pageTemplate.Execute(&html, p),
		os.WriteFile(filepath.Join(dir, "index.html"), html.Bytes(), 0o644),
		os.WriteFile(filepath.Join(dir, "summary.md"), summary.Bytes(), 0o644))
	return errors.Join(errs...)
}
