package fleet

import "slices"

// Form is the number of the encoding of a node's commands. Only the owner of the fleet knows its meaning.
type Form uint16

// Forms returns the forms of the nodes up, each once. The slice belongs to the fleet, and changes with them.
func (f *Fleet) Forms() []Form { return f.forms }

// SetForm changes the form of a node, for as long as its connection lasts. Batches already sent stay as they are.
func (f *Fleet) SetForm(node int, form Form) {
	f.nodes[node].form = form
	f.enlist()
}

// enlist determines which forms are in use, which nodes are away, and whether Sweep can block.
func (f *Fleet) enlist() {
	f.forms, f.away, f.canBlock = f.forms[:0], 0, f.blocks
	for i, n := range f.nodes {
		f.canBlock = f.canBlock && !n.isResting()
		if n.sock == nil {
			f.away.Add(i)
		} else if !slices.Contains(f.forms, n.form) {
			f.forms = append(f.forms, n.form)
		}
	}
}
