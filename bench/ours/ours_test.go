package ours

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

func TestEveryShapeOfCell(t *testing.T) {
	addrs := fakeredis.Addrs(fakeredis.StartN(t, 3))
	for _, d := range []harness.Driver{Driver{}, Driver{Portable: true}, Driver{Scripted: true}, Submitter{}} {
		for _, scenario := range harness.Scenarios {
			cfg := harness.Config{Nodes: addrs, TTL: 10 * time.Second, Scenario: scenario, Concurrency: 2, Keys: [][]string{{"a", "b"}, {"c", "d"}}}
			if scenario == harness.Hot {
				cfg.Keys[1] = cfg.Keys[0]
			}
			// On a machine that is busy enough an attempt may fail, or none end
			// in time; not for ever.
			var r result.Result
			for window := 20 * time.Millisecond; r.Pairs == 0; window *= 2 {
				var err error
				r, err = harness.Measure(t.Context(), d, cfg, harness.Timing{Window: window})
				if errors.Is(err, harness.ErrUnsupported) {
					require.Equal(t, Submitter{}, d)
					require.Equal(t, harness.Hot, scenario)
					r.Driver, r.Scenario, r.Pairs = d.Name(), scenario, 1
					break
				}
				require.NoError(t, err)
			}
			require.Equal(t, d.Name(), r.Driver)
			require.Equal(t, scenario, r.Scenario)
		}
	}
}
