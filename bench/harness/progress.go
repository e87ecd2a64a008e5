package harness

import (
	"fmt"
	"io"
	"os"
)

// Progress shows how far a program is. All its methods are called from one
// goroutine, Clear before anything is printed.
type Progress interface {
	Step(what string)
	Clear()
}

// noProgress shows nothing.
type noProgress struct{}

func (noProgress) Step(string) {}
func (noProgress) Clear()      {}

// meter shows steps in one line of a terminal.
type meter struct {
	out        io.Writer
	step, last int
}

func (m *meter) Step(what string) {
	m.step++
	fmt.Fprintf(m.out, "\r\033[K[%d/%d] %s", m.step, m.last, what)
}

func (m *meter) Clear() { fmt.Fprint(m.out, "\r\033[K") }

// newProgress is the program's own display, else a plain one where there is
// somebody to look at it.
func (p Program) newProgress(w io.Writer, steps int) Progress {
	if p.Progress != nil {
		return p.Progress(w, steps)
	}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return &meter{out: w, last: steps}
		}
	}
	return noProgress{}
}
