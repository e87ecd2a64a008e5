package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// procedure is a chapter of conn/OPERATORS.md. Its commands are typed in their order, with real
// servers in place of the page's names.
type procedure struct {
	*testing.T
	names   map[string]*realredis.Server
	vars    map[string]string // the exported ones
	untyped []string          // commands
	maxTTL  string            // of the commands, in place of the page's
	wait    string            // of nodes
	starts  map[string]int    // of servers, by the page's commands
}

// manual is conn/OPERATORS.md, and one chapter of it.
func manual(t *testing.T, chapter string) (all, one string) {
	text, err := os.ReadFile("../../../conn/OPERATORS.md")
	require.NoError(t, err)
	_, one, found := strings.Cut(string(text), "\n## "+chapter+"\n")
	require.True(t, found)
	one, _, _ = strings.Cut(one, "\n## ")
	return string(text), one
}

// typed finds the commands of a chapter: the ones in its blocks, and the ones with a flag in its text.
var typed = regexp.MustCompile("(?m)(?:^ *((?:redlock|redis-cli|export|ssh) [^`\n#]+)|`((?:redlock|redis-cli) [^`\n#]*-[^`\n#]*))")

func begin(t *testing.T, chapter string, names ...string) *procedure {
	t.Parallel()
	_, text := manual(t, chapter)
	return beginText(t, text, names...)
}

// beginText begins the procedure in a text.
func beginText(t *testing.T, text string, names ...string) *procedure {
	p := &procedure{T: t, names: map[string]*realredis.Server{}, vars: map[string]string{patient: "10s"}, maxTTL: "100ms", wait: "1m", starts: map[string]int{}}
	for i, s := range realredis.StartN(t, len(names)) {
		p.names[names[i]] = s
	}
	for _, m := range typed.FindAllStringSubmatch(text, -1) {
		p.untyped = append(p.untyped, strings.Join(strings.Fields(m[1]+m[2]), " "))
	}
	return p
}

// types types the next command of the chapter, requires it to be this one, and returns its status and output.
func (p *procedure) types(want string) (int, string) {
	p.Helper()
	require.NotEmpty(p, p.untyped)
	require.Equal(p, want, p.untyped[0])
	p.untyped = p.untyped[1:]
	return p.run(want)
}

// works types a command until its status is 0 and it shows a word at least so often. An act waits for a quorum alone,
// so the others may be late; fence status is typed until its status is 0, too.
func (p *procedure) works(want, word string, least int) {
	p.Helper()
	status, out := p.types(want)
	testkit.Await(p.T, "the page's result", func() bool {
		if status == exitOK && strings.Count(out, word) >= least || status != exitOK && !strings.Contains(want, "fence status") {
			return true
		}
		status, out = p.run(want)
		return false
	})
	require.Equal(p, exitOK, status, "%s: %s", want, out)
	require.GreaterOrEqual(p, strings.Count(out, word), least, "%s: %s", want, out)
}

// run types a command, with a short MaxTTL.
func (p *procedure) run(typed string) (int, string) {
	p.Helper()
	words := p.shell(typed)
	if words[0] == "export" {
		name, list, _ := strings.Cut(words[1], "=")
		p.vars[name] = p.addrs(list)
		return exitOK, ""
	}
	for i, word := range words[1:] {
		if words[i] == "-h" || strings.HasSuffix(words[i], "nodes") && word[0] != '-' {
			words[i+1] = p.addrs(word)
		}
	}
	if words[0] == "redis-cli" {
		reply := testkit.DialText(p, words[2]).Do(strings.Join(words[3:], " "))
		require.NotEqual(p, byte('-'), reply[0], reply)
		return exitOK, reply
	}
	if words[0] == "ssh" {
		require.Regexp(p, "^systemctl (re)?start redis-server$", strings.Join(words[2:], " "))
		require.NoError(p, p.names[words[1]].Restart())
		p.starts[words[1]]++
		return exitOK, ""
	}
	switch words[1] {
	case "fence":
		words = append(words, "-max-ttl", p.maxTTL)
	case "nodes":
		words = append(words, "-max-ttl", p.maxTTL, "-wait", p.wait)
	case "run": // it ends by the signals sent to its process
		ended := launch(p.T, nil, binary(append([]string{"run", "-max-ttl", "2s", "-ttl", "1s"}, words[2:]...)...))
		return ended.status(), ended.out.String() + ended.err.String()
	}
	c := command{vars: p.vars}
	var status int
	testkit.Within(p.T, 2*testkit.Patience, typed, func() { status = c.run(p.Context(), words[1:]...) })
	return status, c.out.String() + c.err.String()
}

// shell splits a command into words, as a shell does. Anything a shell would read otherwise, such as a redirection or a
// pipe, leaves a file or other words.
func (p *procedure) shell(typed string) []string {
	p.Helper()
	c := exec.Command("sh", "-c", "set -- "+typed+`; printf '%s\n' "$@"`)
	c.Dir = p.TempDir()
	out, err := c.Output()
	require.NoError(p, err, typed)
	left, err := os.ReadDir(c.Dir)
	require.NoError(p, err)
	require.Empty(p, left, "a file is written by %s", typed)
	return strings.Fields(string(out))
}

// addrs replaces the names of servers by their addresses.
func (p *procedure) addrs(list string) string {
	return regexp.MustCompile(`\w+`).ReplaceAllStringFunc(list, func(name string) string {
		require.NotNil(p, p.names[name], "%s in %s", name, list)
		return p.names[name].Addr()
	})
}

// flush has servers forget.
func (p *procedure) flush(names string) {
	for name := range strings.SplitSeq(names, ",") {
		p.run("redis-cli -h " + name + " FLUSHALL")
	}
}

// TestProcedures: an operator types the page's commands, and sees its results. Each command of the
// three chapters is typed.
func TestProcedures(t *testing.T) {
	t.Parallel()
	t.Run("Changing nodes", func(t *testing.T) {
		p := begin(t, "Changing nodes", "a", "b", "c", "d")
		_, out := p.types("redis-cli -h d INFO server")
		require.Contains(t, out, "uptime_in_seconds:")
		for _, command := range []string{"redlock nodes -nodes a,b,c -next-nodes a,b,d", "redis-cli -h a CLIENT LIST", "redlock nodes -nodes a,b,d", "redis-cli -h c CLIENT LIST"} {
			status, out := p.types(command)
			require.Equal(t, exitOK, status, "%s: %s", command, out)
			if strings.Contains(command, "CLIENT") {
				require.Contains(t, out, " name=")
			}
		}
		require.Empty(t, p.untyped)
	})
	t.Run("Fenced fleets", func(t *testing.T) {
		const all = "-nodes a,b,c -max-ttl 1m"
		p := begin(t, "Fenced fleets", "a", "b", "c", "d", "c2")
		p.works("redlock fence init "+all, "votes", 2)
		p.works("redlock fence status "+all, "votes", 3)
		p.works("redlock fence status "+all, "votes", 3)
		p.flush("a,b")
		p.works("redlock fence recover "+all+" -at-least 1790000000000000", "votes", 2)
		p.works("redlock fence status "+all, "votes", 3)
		const change = "-nodes a,b,c -next-nodes a,b,d -max-ttl 1m"
		p.works("redlock fence status "+change, " now ", 2)
		p.works("redlock fence change "+change, " next ", 2)
		_, out := p.types("redis-cli -h a ZRANGEBYSCORE redlock:fence -1 -1")
		require.Contains(t, out, "active:nodes-")
		p.flush("a,b,c,d") // for the next procedure
		status, out := p.run("redlock fence init " + all)
		require.Equal(t, exitOK, status, out)
		p.works("redlock fence change -nodes a,b,c -next-nodes a,b", " next ", 2)
		_, out = p.types("redis-cli -h c ZREMRANGEBYSCORE redlock:fence -inf -1")
		require.Contains(t, out, ":1")
		p.works("redlock fence change -nodes a,b -next-nodes a,b,c2", " next ", 2)
		require.Empty(t, p.untyped)
	})
	t.Run("Groups", func(t *testing.T) {
		p := begin(t, "Groups", "a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3")
		runs := func(want int, command string) {
			t.Helper()
			status, out := p.run(command)
			require.Equal(t, want, status, out)
		}
		p.works("export REDLOCK_NODES='a1,a2,a3;b1,b2,b3'", "", 1)
		runs(exitNoQuorum, "redlock fence status")
		runs(exitOK, "redlock fence init")
		p.works("export REDLOCK_NEXT_NODES='a1,a2,a3;b1,b2,b3;c1,c2,c3'", "", 1)
		p.works("redlock nodes", "", 1)
		p.works("redlock fence init", "votes", 6)
		p.works("redlock fence change", " next ", 6)
		delete(p.vars, "REDLOCK_NEXT_NODES")
		runs(exitNoQuorum, "redlock fence status")
		runs(exitOK, "redlock fence status -nodes 'a1,a2,a3;b1,b2,b3;c1,c2,c3'")
		require.Empty(t, p.untyped)
	})
}
