//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPairs: a signal received by both processes was sent to the group. The number of looks decides, not seconds, so a
// keeper that stood still between the two halves takes them for one signal.
func TestPairs(t *testing.T) {
	for events, want := range map[string]string{
		"OJ": "group", "JO": "group",
		"O....J": "group", // the looks of 100 ms; with SIGSTOP after the first half, of any time
		"O.....": "alone", "J.....": "alone", "OO.....": "alone",
		"O.....J.....": "alone alone",
		"OJOJ":         "group", "OJ....J": "group", // timeout(1)
		"OJ.....JO":      "group group",
		"OJ....O.J.....": "group", "OJ....J.....": "group", // the second half of what is dropped comes after the moment, or never
		"OcJ": "group", "OJc.....": "group cont", "O..cJ.....": "group cont",
		"cO.....": "cont alone", "Oc.....": "alone cont", // in order: a shell's program loses the second of some
	} {
		var p pairs
		got := ""
		pass := func(a arrival) {
			name := map[bool]string{true: " group", false: " alone"}[a.isOfGroup]
			if a.signal == syscall.SIGCONT {
				name = " cont"
			}
			got += name
		}
		for _, event := range events {
			h := half{isOwn: event != 'J'}
			switch event {
			case '.':
				for _, alone := range p.look() {
					pass(alone)
				}
				continue
			case 'c':
				h.signal = syscall.SIGCONT
			default:
				h.signal = syscall.SIGINT
			}
			if whole, isWhole := p.add(h); isWhole {
				pass(whole)
			}
		}
		require.Equal(t, want, got[1:], events)
	}
}
