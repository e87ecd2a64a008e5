package histories

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/testkit"
)

// many are scenarios of a client that waits for more keys than it asks a quorum about each second.
var many = []scenario{
	// A release that one node has missed delays no caller for long, whichever node its process watches.
	{"leftover on one node, of many keys", 3, func(s *stage) { s.leftovers(2000, 1500*time.Millisecond) }},
	{"leftover on one node, of very many keys", 3, func(s *stage) {
		if testkit.Long() {
			s.leftovers(8000, 2500*time.Millisecond)
		}
	}},
}

// leftovers has another process release n locks that a client waits for, of which one node keeps the keys.
func (s *stage) leftovers(n int, bound time.Duration) {
	c, key := s.Client(), func(i int) string { return fmt.Sprint("k", i) }
	var all []*waiting
	for i := range n {
		for _, server := range s.Servers {
			server.Set(key(i), "another's", 0)
		}
		all = append(all, s.begin(s.ctx, c, key(i), longTTL))
	}
	for i := range n / 50 { // that stay
		for _, server := range s.Servers {
			server.Set(fmt.Sprint("other", i), "another's", 0)
		}
		s.begin(s.ctx, c, fmt.Sprint("other", i), longTTL)
	}
	time.Sleep(3100 * time.Millisecond) // the questions have just been asked
	released := time.Now()
	for i := range n {
		for _, server := range s.Servers[1:] {
			server.Del(key(i))
		}
	}
	var longest time.Duration
	for _, w := range all {
		<-w.done
		require.NoError(s.T, w.err)
		longest = max(longest, w.ended.Sub(released))
	}
	s.T.Log("longest wait:", longest)
	require.LessOrEqual(s.T, longest, bound)
}
