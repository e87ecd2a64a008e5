//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// span is a time for which a lock was held, or a part of it: from the first time at which that was seen to the last. Each
// of these was read before the lock was asked whether it is held, and an ended lock stays so. So the lock was held
// all that time, although its process may have stood still meanwhile.
type span struct {
	first, last int64 // on the clock of the machine, in nanoseconds
	key         int
	isWriter    bool
	library     string
}

// judge collects spans.
type judge struct {
	mu       sync.Mutex
	spans    map[string]*span // by holder and key
	kinds    map[string]int
	failed   map[string]int
	together int // the most readers of a key at once
	overlaps []string
	closest  time.Duration // between a writer and the next holder
}

func newJudge() *judge {
	return &judge{spans: map[string]*span{}, kinds: map[string]int{}, failed: map[string]int{}, closest: math.MaxInt64}
}

// hear takes a line of a process.
func (j *judge) hear(library, line string) {
	var holder, mode string
	var key int
	var at int64
	j.mu.Lock()
	defer j.mu.Unlock()
	if n, _ := fmt.Sscanf(line, "held %d %s %s %d", &key, &holder, &mode, &at); n != 4 {
		j.failed[library+": "+line]++
		return
	}
	id := fmt.Sprint(holder, " ", key)
	if s := j.spans[id]; s != nil {
		s.last = max(s.last, at)
		return
	}
	j.spans[id] = &span{first: at, last: at, key: key, isWriter: mode == "writer", library: library}
	j.kinds[library+" "+mode]++
}

// hasBegun reports whether a reader and a writer of this library have held a lock.
func (j *judge) hasBegun() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.kinds[byOurs+" reader"] > 0 && j.kinds[byOurs+" writer"] > 0
}

func (j *judge) holds() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.spans)
}

// verdict is an error if a writer was not alone. A reader may begin beside readers, and nothing may begin before a writer
// has ended.
func (j *judge) verdict() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for key := range keys {
		var all []*span
		for _, s := range j.spans {
			if s.key == key {
				all = append(all, s)
			}
		}
		slices.SortFunc(all, func(a, b *span) int { return cmp.Compare(a.first, b.first) })
		var writer, last *span // those that end last
		var readers []int64    // the ends of readers that may be there
		for _, s := range all {
			before := writer
			if s.isWriter {
				before = last
			}
			if before != nil && before.last >= s.first {
				j.overlaps = append(j.overlaps, fmt.Sprintf("key %d: %s beside %s for %v", key, s, before, time.Duration(min(before.last, s.last)-s.first)))
			} else if writer != nil {
				j.closest = min(j.closest, time.Duration(s.first-writer.last))
			}
			if s.isWriter && (writer == nil || s.last > writer.last) {
				writer = s
			}
			if last == nil || s.last > last.last {
				last = s
			}
			if !s.isWriter {
				readers = slices.DeleteFunc(readers, func(end int64) bool { return end < s.first })
				readers = append(readers, s.last)
				j.together = max(j.together, len(readers))
			}
		}
	}
	if len(j.overlaps) > 0 {
		return fmt.Errorf("%d times two held a key at once", len(j.overlaps))
	}
	return nil
}

func (s *span) String() string {
	if s.isWriter {
		return "a writer of " + s.library
	}
	return "a reader of " + s.library
}

func (j *judge) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%d holds of %d keys: %v; %d readers at once at most; %v between a writer and the next at least\n", len(j.spans), keys, j.kinds, j.together, j.closest)
	fmt.Fprintf(&b, "overlaps: %d\n", len(j.overlaps))
	for _, text := range j.overlaps[:min(10, len(j.overlaps))] {
		fmt.Fprintln(&b, " ", text)
	}
	texts := make([]string, 0, len(j.failed))
	for text, n := range j.failed {
		texts = append(texts, fmt.Sprintf("  %d x %s", n, text))
	}
	slices.Sort(texts)
	for _, text := range texts[:min(20, len(texts))] {
		fmt.Fprintln(&b, text)
	}
	return b.String()
}
