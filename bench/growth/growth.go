// Package growth measures what only makes sense for one client at a time: what
// it costs while it does nothing or holds many locks, and what several of them
// do to each other.
package growth

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/result"
)

// Run measures everything against the masters and tells it note by note. It
// takes a minute or two.
func Run(ctx context.Context, nodes []string, note func(result.Note)) error {
	for _, measure := range []func(context.Context, []string, func(result.Note)) error{idle, held, clients, processes} {
		if err := measure(ctx, nodes, note); err != nil {
			return err
		}
	}
	return nil
}

// timing is that of the cells measured here.
var timing = harness.Timing{Warmup: 300 * time.Millisecond, Window: 2 * time.Second}

// teller writes the notes of one part.
type teller struct {
	part string
	note func(result.Note)
}

func (t teller) tell(what string, figures ...result.Figure) {
	t.note(result.Note{Part: t.part, What: what, Figures: figures})
}
