package main

import (
	"os"
	"strings"
)

// hasOthers reports whether a process of the group runs besides the supervisor.
func (g *group) hasOthers() bool {
	all, _ := os.ReadDir("/proc")
	for _, dir := range all {
		if name := dir.Name(); name[0] >= '0' && name[0] <= '9' {
			stat, _ := os.ReadFile("/proc/" + name + "/stat")
			_, rest, _ := strings.Cut(string(stat[strings.LastIndex(string(stat), ")")+1:]), " ")
			if words := strings.Fields(rest); len(words) > 2 && g.isOf(name, words[0], words[2]) {
				return true
			}
		}
	}
	return false
}
