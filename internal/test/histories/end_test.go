package histories

import (
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

const (
	// longestEnd is how long the callers of a history may take to return when its context ends.
	longestEnd = 5 * time.Second
	// longestKey bounds the life of keys of a departed client: the queue of an unwanted lock.
	longestKey = 2*time.Minute + time.Second
)

// end waits for the end of all goroutines, and looks at the remains.
func (h *history) end() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.all.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(longestEnd):
		h.fail("callers do not return")
		<-ended // or the bubble shows where they are
	}
	defer h.Close()
	if h.failed() {
		return
	}
	time.Sleep(2 * onTheWay)
	h.owners.look(time.Now(), false)
	if h.troubles == 0 {
		h.requireNone("a client that was closed leaves", func(key string) bool {
			queue, isQueue := strings.CutSuffix(key, ":redlock:queue")
			isGap := slices.ContainsFunc(h.Servers, func(s *fakeredis.Server) bool { _, gap := s.Get(queue + ":redlock:gap"); return gap })
			return isQueue && !isGap || strings.Contains(key, ":redlock:ticket") && !strings.HasSuffix(key, ":gap") // others end soon
		})
	}
	time.Sleep(longestKey)
	for key, node := range h.leftovers {
		h.Servers[node].Del(key)
	}
	h.requireNone("all TTLs are over, and there is", func(key string) bool { return key != "redlock:fence" })
}

func (h *history) requireNone(what string, unwanted func(key string) bool) {
	for i, s := range h.Servers {
		if keys := s.Keys(); slices.ContainsFunc(keys, unwanted) {
			h.fail("%s %q on node %d", what, keys, i)
		}
	}
}
