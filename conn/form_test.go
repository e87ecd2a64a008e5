package conn

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/scripted"
	"github.com/redlock-go/redlock/internal/wire/command"
)

// TestEachNodeIsSentItsForm: of a list of batches every node has one, and all
// of them end, those too that no node has.
func TestEachNodeIsSentItsForm(t *testing.T) {
	const (
		scripts = Form(command.Scripts)
		valkey  = Form(command.DelIfEq)
		half    = Form(command.DelEx) // any other
	)
	native := answers("DELIFEQ", ":0\r\n")
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		ps := []*scripted.Server{scripted.New(t, native), scripted.New(t), scripted.New(t, native)}
		r := newTestFleet(t, portable, ps)
		r.up()
		// sends gives the fleet one batch in each form. Each node that is up is asked in its own; one that is down goes by its last.
		sends := func(own ...Form) {
			t.Helper()
			var spoken []Form
			ls := map[Form]*ledger{}
			r.do(func() {
				var list *Batch
				for _, f := range []Form{half, scripts, valkey} {
					l := newLedger(t, []string{fmt.Sprint(f)})
					l.Form, l.Next, l.nodes = f, list, make([]account, r.Len())
					list, ls[f] = &l.Batch, l
					r.sent = append(r.sent, l)
				}
				for node, f := range own {
					ls[f].due++
					if r.wires[node] != nil && !slices.Contains(spoken, f) {
						spoken = append(spoken, f)
					}
				}
				assert.ElementsMatch(t, spoken, r.Forms())
				r.Send(list)
			})
			for node, f := range own {
				if w := r.wires[node]; w != nil {
					w.Expect(string(ls[f].Buf))
					w.Send(echoes(ls[f].tags...))
				}
			}
			r.awaitDone(ls[half], ls[scripts], ls[valkey])
		}
		sends(valkey, scripts, valkey)
		r.do(func() { r.SetForm(2, half) })
		sends(valkey, scripts, half)
		for _, node := range []int{0, 2} { // nothing is written for who is down
			ps[node].Stop()
			r.lose(node)
		}
		sends(valkey, scripts, half)
		ps[2].Start(t) // and is asked anew when it comes back
		r.wires[2] = ps[2].Next(t)
		r.until("for node 2", func() bool { return r.Up(2) })
		sends(valkey, scripts, valkey)
	})
}
