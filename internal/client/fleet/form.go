package fleet

import (
	"slices"

	"github.com/redlock-go/redlock/resp"
)

// Form is the number of the encoding of a node's commands. Only the owner of the fleet knows its meaning.
type Form uint16

// Prober is the owner's part of one handshake: commands to find the form of a node.
type Prober interface {
	Len() int               // commands
	Command(i int) []string // as words
	// Answer takes in the reply to command i; all of them, in order. An error ends
	// the connection.
	Answer(i int, reply *resp.Value) error
	Form() uint16 // as shown by the answers
}

// Forms returns the forms of the nodes up, each once. The slice belongs to the fleet, and changes with them.
func (f *Fleet) Forms() []Form { return f.forms }

// SetForm changes the form of a node, for as long as its connection lasts. Batches already sent stay as they are.
func (f *Fleet) SetForm(node int, form Form) {
	f.nodes[node].form = form
	f.enlist()
}

// enlist determines which forms are in use, and which nodes are away.
func (f *Fleet) enlist() {
	f.forms, f.away = f.forms[:0], 0
	for i, n := range f.nodes {
		if n.sock == nil {
			f.away.Add(i)
		} else if !slices.Contains(f.forms, n.form) {
			f.forms = append(f.forms, n.form)
		}
	}
}
