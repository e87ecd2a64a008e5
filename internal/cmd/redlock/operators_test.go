package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestFencedProcedures types the commands of the chapter about fenced fleets, in their order, with nodes in
// place of its letters, and looks for what the page says is seen.
func TestFencedProcedures(t *testing.T) {
	text, err := os.ReadFile("../../../conn/OPERATORS.md")
	require.NoError(t, err)
	chapter := string(text)
	_, chapter, found := strings.Cut(chapter, "## Fenced fleets")
	require.True(t, found)
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	commands := regexp.MustCompile(`(?m)^ *redlock (fence .*-max-ttl 1m.*)$`).FindAllStringSubmatch(chapter, -1)
	var verbs []string
	servers := cluster.Start(t, 4)
	names := map[string]string{"a": servers[0].Addr(), "b": servers[1].Addr(), "c": servers[2].Addr(), "d": servers[3].Addr()}
	for _, c := range commands {
		args := strings.Fields(strings.Replace(c[1], "-max-ttl 1m", "-max-ttl 100ms", 1))
		for i, arg := range args {
			if i > 0 && strings.HasSuffix(args[i-1], "nodes") {
				var all []string
				for name := range strings.SplitSeq(arg, ",") {
					all = append(all, names[name])
				}
				args[i] = strings.Join(all, ",")
			}
		}
		verbs = append(verbs, args[1])
		if args[1] == "recover" {
			servers[0].Flush()
			servers[1].Flush()
		}
		var status int
		var out, log string
		testkit.Await(t, "the page's result", func() bool { // of status: it is typed until nodes vote
			status, out, log = redlockOn(t, nil, args...)
			return status == exitOK && strings.Count(out, "votes") >= 2 || args[1] != "status"
		})
		require.Equal(t, exitOK, status, "%v: %s%s", args, out, log)
		if args[1] == "change" {
			require.GreaterOrEqual(t, strings.Count(out, " next "), 2, out)
		} else {
			require.GreaterOrEqual(t, strings.Count(out, "votes"), 2, out)
		}
	}
	require.Equal(t, []string{"init", "status", "status", "recover", "status", "status", "change"}, verbs)
}
