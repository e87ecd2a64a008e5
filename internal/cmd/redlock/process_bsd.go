//go:build unix && !linux

package main

import (
	"os/exec"
	"strings"
)

// hasOthers reports whether a process of the group runs besides the supervisor.
func (g *group) hasOthers() bool {
	list, _ := exec.Command("ps", "-A", "-o", "pid=,stat=,pgid=").Output()
	for line := range strings.Lines(string(list)) {
		if words := strings.Fields(line); len(words) == 3 && g.isOf(words[0], words[1][:1], words[2]) {
			return true
		}
	}
	return false
}
