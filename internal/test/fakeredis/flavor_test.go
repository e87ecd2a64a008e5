package fakeredis

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// TestFlavorsAreTheirServers: where the conformance suite asks for a code, the fake of the same
// flavor gives the server's answers, word for word.
func TestFlavorsAreTheirServers(t *testing.T) {
	t.Parallel()
	for dir, password := range map[string]string{"open": "", "password": "secret"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
				s := realredis.Start(t, withDebug(kind, password))
				server := target{addr: s.Addr(), password: password}
				flavor, ok := flavorOf(server.admin(t).Do("HELLO"))
				if !ok {
					t.Skip("skipped: no flavor is like this server")
				}
				f := StartN(t, 1, Options{Flavor: flavor, Password: password})[0]
				fake := target{addr: f.Addr(), password: password, fake: f}
				server.probe(t)
				fake.probe(t)
				server.has["real"] = false // what only a real server is asked
				if flavor == Redis84 && !server.has["delex"] {
					require.True(t, fake.has["delex"]) // the server is an 8.0, and this is the addition of 8.4
					fake.has["delex"] = false
				}
				require.Equal(t, server.has, fake.has)

				files, err := filepath.Glob(filepath.Join("testdata", dir, "*.txt"))
				require.NoError(t, err)
				for _, file := range files {
					require.Equal(t, transcript(t, file, server), transcript(t, file, fake))
				}
				for _, section := range []string{"server", "memory", "replication"} {
					shown := infoFields(server.admin(t), section)
					require.NotEmpty(t, shown)
					require.Subset(t, shown, infoFields(fake.admin(t), section), "INFO %s", section)
				}
			})
		})
	}
}

// flavorOf is the flavor of a server, by its answer to HELLO.
func flavorOf(hello string) (f Flavor, ok bool) {
	for pattern, f := range map[string]Flavor{
		`"server" "redis" "version" "7\.0\.`: Redis7,
		`"server" "redis" "version" "8\.`:    Redis84,
		`"server" "valkey" "version" "9\.`:   Valkey9,
	} {
		if regexp.MustCompile(pattern).MatchString(hello) {
			return f, true
		}
	}
	return 0, false
}

var (
	number  = regexp.MustCompile(`\b\d+\b`)
	variety = regexp.MustCompile(`^> INFO`) // the fake reports less
)

// transcript is the answers of a server to one script of the suite. Numbers are left out: clocks
// and counters differ.
func transcript(t *testing.T, file string, g target) string {
	g.prepare(t)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var b strings.Builder
	g.hear = func(line, reply string) {
		if reply == "reset" {
			reply = "closed" // which of them depends on the moment
		}
		b.WriteString(line + "\n")
		if !variety.MatchString(line) || strings.HasPrefix(reply, "-") {
			b.WriteString(number.ReplaceAllString(reply, "0") + "\n")
		}
	}
	play(t, g, string(text))
	return b.String()
}

// infoFields are the names of the fields in a section of INFO.
func infoFields(c *testkit.TextClient, section string) (names []string) {
	text, _ := strconv.Unquote(c.Do("INFO " + section))
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, name)
		}
	}
	return names
}
