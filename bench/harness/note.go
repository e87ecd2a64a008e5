package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Note is something measured that is no cell: a few figures about one thing.
type Note struct {
	Part    string // what it belongs to
	What    string
	Figures []Figure
}

// Figure is a number and its unit, which also says what it is.
type Figure struct {
	Value float64
	Unit  string
}

// String has as many decimals as a reader wants.
func (f Figure) String() string {
	decimals := 0
	switch size := max(f.Value, -f.Value); {
	case size == float64(int64(size)):
	case size < 10:
		decimals = 2
	case size < 100:
		decimals = 1
	}
	return fmt.Sprintf("%.*f %s", decimals, f.Value, f.Unit)
}

// String is the note as a line of text.
func (n Note) String() string {
	all := make([]string, len(n.Figures))
	for i, f := range n.Figures {
		all[i] = f.String()
	}
	return strings.Join(all, ", ")
}

// MarshalJSON names the figures by their units.
func (n Note) MarshalJSON() ([]byte, error) {
	figures := map[string]float64{}
	for _, f := range n.Figures {
		figures[f.Unit] = round(f.Value)
	}
	return json.Marshal(struct {
		Part    string             `json:"part"`
		What    string             `json:"what"`
		Figures map[string]float64 `json:"figures"`
	}{n.Part, n.What, figures})
}

// printNote prints a note below those that belong to the same.
func printNote(w io.Writer, n Note, before []Note) {
	if len(before) == 0 || before[len(before)-1].Part != n.Part {
		fmt.Fprintf(w, "\n%s\n", n.Part)
	}
	fmt.Fprintf(w, "%-36s%v\n", n.What, n)
}
