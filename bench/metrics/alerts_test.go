package metrics

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// TestAlerts: the rules fire where they should, by promtool (Debian: prometheus), and ask for series that there are.
func TestAlerts(t *testing.T) {
	rules, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, work(t, redlock.Config{}).Stats().WriteMetrics(&text))
	served, err := os.ReadFile("../../internal/cmd/redlock/metrics.go")
	require.NoError(t, err)
	for _, name := range regexp.MustCompile(`redlock_[a-z_]+`).FindAllString(string(rules), -1) {
		if name != "redlock_group" {
			require.Contains(t, text.String()+string(served), name)
		}
	}
	page, err := os.ReadFile("../../conn/OPERATORS.md")
	require.NoError(t, err)
	_, task, _ := strings.Cut(string(page), "\n### An alert fires\n")
	task, _, _ = strings.Cut(task, "\n### ")
	for rule := range strings.SplitSeq(string(rules), "- alert: ") {
		name, rest, _ := strings.Cut(rule, "\n")
		if strings.HasPrefix(name, "Redlock") { // each has its task
			m := regexp.MustCompile(`runbook_url: https://\S+/conn/OPERATORS\.md#(\S+)\n`).FindStringSubmatch(rest)
			require.NotNil(t, m, name)
			require.Contains(t, task, "`"+name+"`")
			require.Contains(t, strings.ReplaceAll(strings.ToLower(string(page)), " ", "-"), "\n###-"+m[1]+"\n")
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not here")
	}
	out, err := exec.Command(promtool, "test", "rules", "alerts_test.yml").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
