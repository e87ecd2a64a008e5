package fleet

import (
	"fmt"
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
	native := func(p *scripted.Server) {
		p.Answers = map[string]string{"DELIFEQ": ":0\r\n"}
	}
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		ps := []*scripted.Server{scripted.New(t, native), scripted.New(t), scripted.New(t, native)}
		r := newTestFleet(t, portable, ps)
		r.up()
		is := func(want ...Form) {
			t.Helper()
			r.do(func() { assert.ElementsMatch(t, want, r.Forms()) })
		}
		// post sends one batch in each dialect, in this order, and has every
		// node asked for its own.
		post := func(own ...Form) {
			t.Helper()
			all := []Form{valkey, scripts, half}
			ls := make([]*ledger, len(all))
			r.do(func() {
				for i := len(all) - 1; i >= 0; i-- {
					l := newLedger(t, []string{fmt.Sprint(all[i])})
					l.Form, l.nodes = all[i], make([]account, r.Len())
					for _, d := range own {
						if d == all[i] {
							l.due++
						}
					}
					if i < len(all)-1 {
						l.Next = &ls[i+1].Batch
					}
					ls[i] = l
				}
				r.sent = append(r.sent, ls...)
				r.Send(&ls[0].Batch)
			})
			for node, d := range own {
				if w := r.wires[node]; w != nil {
					w.Expect(string(encode("ECHO", fmt.Sprint(d))))
					w.Send(echoes(fmt.Sprint(d)))
				}
			}
			r.awaitDone(ls...)
		}
		is(valkey, scripts)
		post(valkey, scripts, valkey)

		r.do(func() { r.SetForm(2, half) })
		is(valkey, scripts, half)
		post(valkey, scripts, half)

		for _, node := range []int{0, 2} { // nothing is written for who is down
			ps[node].Stop()
			r.lose(node)
		}
		is(scripts)
		post(valkey, scripts, half) // as those two were last, which is as good as any

		ps[2].Start(t) // and is asked anew when it comes back
		r.wires[2] = ps[2].Next(t)
		r.until("for node 2", func() bool { return r.Up(2) })
		is(scripts, valkey)
	})
}
