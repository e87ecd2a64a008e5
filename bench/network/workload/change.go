package workload

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
)

// change replaces the nodes, or adds a group, in the two steps of Config.NextNodes, one client a second. The second begins when all
// clients of the first list have ended (a turn takes 8 s at most, a stopped process 5 s more), and the longest TTL has passed. With
// fencing the nodes change between the steps, and a new group has no vote before an operator's call.
func (p *process) change() {
	for i, step := range [][2][][]string{{p.Nodes, p.Next}, {p.Next, nil}} {
		at := p.Times.Start.Add(time.Duration(p.Client) * time.Second)
		history.Sleep(at.Add([]time.Duration{4 * time.Second, 26 * time.Second}[i]))
		if p.isOver() { // a short run
			return
		}
		if p.Fenced && i == 1 {
			p.insist(p.now.client.ChangeFencing)
		}
		c, err := p.open(step[0], step[1])
		if err != nil {
			panic(err)
		}
		var operator sync.WaitGroup
		before := p.use(c, ours{c})
		if p.Fenced && p.Groups && i == 0 {
			operator.Go(func() { p.insist(c.InitFencing) })
		}
		before.turns.Wait()
		p.file.Add(history.Record{End: p.shutdown(before.client)})
		operator.Wait()
	}
}

// insist makes an operator's call, which is cut off now and then, until it has done its work. All processes do so at about the
// same time.
func (p *process) insist(call func(context.Context) error) {
	rng := rand.New(rand.NewPCG(p.Seed, uint64(p.Client)))
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.Int64N(int64(8*time.Second))))
		err := call(ctx)
		cancel()
		if err == nil {
			return
		} else if p.isOver() {
			panic(err)
		}
		time.Sleep(beat)
	}
}
