package fakeredis

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// The conformance suite is the scripts in testdata. Each of them runs against the fake in all its
// flavors, and against a real server of each kind, and all must answer as the scripts say. The fake of
// a server's flavor says the same, word for word, also where a script asks for a code alone.
// testdata/password is for servers with the password "secret". See play for the language.
func TestConformance(t *testing.T) {
	t.Parallel() // the scripts wait for keys to expire
	for dir, password := range map[string]string{"open": "", "password": "secret"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			files, err := filepath.Glob(filepath.Join("testdata", dir, "*.txt"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			fakes := map[string]*target{} // by what they answer to
			t.Run("fake", func(t *testing.T) {
				for _, f := range []Flavor{Redis7, Valkey9, Redis84} {
					s, err := Start(Options{Flavor: f, Password: password})
					require.NoError(t, err)
					fake := &target{addr: s.Addr(), password: password, fake: s}
					fakes[f.String()] = fake
					t.Run(f.String(), func(t *testing.T) {
						t.Parallel()
						fake.said = playAll(t, files, *fake)
					})
				}
			})
			defer func() {
				for _, fake := range fakes {
					_ = fake.fake.Close()
				}
			}()
			realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
				s := realredis.Start(t, realredis.Options{Kind: kind, Password: password})
				server := target{addr: s.Addr(), password: password}
				replies := playAll(t, files, server)
				fake, ok := fakes[flavorOf(server.admin(t).Do("HELLO"))]
				if !ok {
					t.Skip("skipped: no flavor is like this server")
				}
				want := fake.said
				server.probe(t)
				if fake.fake.opts.Flavor == Redis84 && !server.has["delex"] { // an 8.0: DELEX is the addition of 8.4
					fake.lacks = "delex"
					want = playAll(t, files, *fake)
				}
				require.Equal(t, want, replies)
				for _, section := range []string{"server", "memory", "replication"} {
					shown := infoFields(server.admin(t), section)
					require.NotEmpty(t, shown)
					require.Subset(t, shown, infoFields(fake.admin(t), section), "INFO %s", section)
				}
			})
		})
	}
}

// flavorOf is the name of the flavor like a server, by its answer to HELLO, or "".
func flavorOf(hello string) string {
	for part, f := range map[string]Flavor{
		`"server" "redis" "version" "7.0.`: Redis7,
		`"server" "redis" "version" "8.`:   Redis84,
		`"server" "valkey" "version" "9.`:  Valkey9,
	} {
		if strings.Contains(hello, part) {
			return f.String()
		}
	}
	return ""
}

// infoFields are the names of the fields in a section of INFO.
func infoFields(c *testkit.TextClient, section string) (names []string) {
	for line := range strings.Lines(c.Text("INFO " + section)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, name)
		}
	}
	return names
}

type target struct {
	addr     string
	password string
	fake     *Server // nil if it is a real one
	has      map[string]bool
	lacks    string // a feature that it must not use
	said     map[string]string
}

func (g target) admin(t testing.TB) *testkit.TextClient {
	c := testkit.DialText(t, g.addr)
	if g.password != "" {
		require.Equal(t, "+OK", c.Do("AUTH "+g.password))
	}
	return c
}

// probe finds out what the server can do, as a lock client has to.
func (g *target) probe(t testing.TB) {
	c := g.admin(t)
	known := func(line string) bool {
		return !strings.HasPrefix(c.Do(line), "-ERR unknown")
	}
	g.has = map[string]bool{
		"real":       g.fake == nil,
		"delifeq":    known("DELIFEQ probe y"),
		"delex":      known("DELEX probe IFEQ y"),
		"clientinfo": known("CLIENT SETINFO LIB-NAME x"),
		"redis7":     strings.Contains(c.Do("HELLO"), `"7.0.`),
	}
	if g.lacks != "" {
		g.has[g.lacks] = false
	}
}

// prepare brings the server to the start of each script.
func (g target) prepare(t testing.TB) {
	c := g.admin(t)
	c.Must("FLUSHALL")
	if g.fake != nil {
		g.fake.FlushScripts()
	} else {
		c.Must("SCRIPT FLUSH")
	}
	g.allow(t, c)
}

func (g target) allow(t testing.TB, c *testkit.TextClient) {
	if g.fake != nil {
		g.fake.Allow()
		return
	}
	require.Equal(t, "+OK", c.Do("ACL SETUSER default +@all"))
}

func (g target) deny(t testing.TB, names []string) {
	if g.fake != nil {
		g.fake.Deny(names...)
		return
	}
	c := g.admin(t)
	for _, name := range names {
		require.Equal(t, "+OK", c.Do("ACL SETUSER default -"+strings.ToLower(name)))
	}
}

// fill has the server refuse what adds to its data.
func (g target) fill(t testing.TB, how string) {
	if g.fake != nil {
		g.fake.Fill(how == "yes")
		return
	}
	g.admin(t).Must("CONFIG SET maxmemory " + map[string]string{"yes": "1", "no": "0"}[how])
}

func (g target) plant(t testing.TB, key string) {
	if g.fake != nil {
		g.fake.Plant(key, "list")
		return
	}
	require.Equal(t, ":1", g.admin(t).Do("RPUSH "+key+" x"))
}

// playAll plays all scripts, and returns what the server has said in each. Numbers are left out:
// clocks and counters differ.
func playAll(t *testing.T, files []string, g target) map[string]string {
	g.probe(t)
	said := map[string]string{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			g.prepare(t)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var b strings.Builder
			play(t, g, string(text), func(line, reply string) {
				if reply == "reset" {
					reply = "closed" // which of them depends on the moment
				}
				b.WriteString(line + "\n")
				if !strings.HasPrefix(line, "> INFO") || strings.HasPrefix(reply, "-") { // the fake shows less
					b.WriteString(number.ReplaceAllString(reply, "${1}0") + "\n")
				}
			})
			said[file] = b.String()
		})
	}
	return said
}

var number = regexp.MustCompile(`(\\n|\b)\d+\b`) // also at the beginning of a line of a quoted text

// play runs one script, line by line:
//
//	> SET k v NX     sends a command
//	>128 SET k# t#   sends it 128 times, with numbers from 1 for #
//	raw *1\r\n       sends bytes
//	+OK              is the answer to the last command, see matches
//	dial             goes on with a new connection
//	on b             goes on with connection b, a new one if the name is new; the first
//	                 is a
//	push *["k"]      is the next push, about these keys; _ is all
//	plant k          makes k a list
//	deny SET         forbids a command to the user of the connection
//	allow            forbids nothing any more
//	full yes         fills the server: its memory is used up; no: that ends
//	until gone k     waits for a key to expire
//	if ifeq          skips the next lines if the server lacks a feature, up to
//	end
//
// Words of commands: k#128 is k1 to k128, {release} and the other names of scriptNames are the
// texts of the scripts, {release-sha} and so on their digests, {nonce} is the last nonce in a
// reply, {space} a space, {long} 500 bytes, and {empty} is empty.
func play(t *testing.T, g target, text string, hear func(line, reply string)) {
	c := testkit.DialText(t, g.addr)
	named := map[string]*testkit.TextClient{"a": c}
	replies, skipping, real, asked, nonce := 0, false, false, "", ""
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		verb, rest, _ := strings.Cut(line, " ")
		switch {
		case verb == "end":
			skipping, real = false, false
		case skipping, line == "", verb == "#":
		case verb == "if":
			has, known := g.has[rest]
			require.True(t, known, "feature %s", rest)
			skipping, real = !has, rest == "real"
		case verb[0] == '>':
			replies, asked = 1, line
			if len(verb) > 1 {
				replies, _ = strconv.Atoi(verb[1:])
			}
			rest = strings.ReplaceAll(rest, "{nonce}", nonce)
			for i := range replies {
				c.Send(testkit.Encode(expand(rest, i+1)...))
			}
		case verb == "raw":
			raw, err := strconv.Unquote(`"` + rest + `"`)
			require.NoError(t, err)
			c.Send(raw)
			replies, asked = 1, line
		case verb == "dial":
			c = testkit.DialText(t, g.addr)
		case verb == "on":
			if named[rest] == nil {
				named[rest] = testkit.DialText(t, g.addr)
			}
			c = named[rest]
		case verb == "push":
			require.Equal(t, `>["invalidate" `+rest+"]", c.Receive(), "line %d", number+1)
		case verb == "plant":
			g.plant(t, rest)
		case verb == "deny":
			g.deny(t, strings.Fields(rest))
		case verb == "allow":
			g.allow(t, c)
		case verb == "full":
			g.fill(t, rest)
		case verb == "until":
			key := strings.TrimPrefix(rest, "gone ")
			for c.Do("EXISTS "+key) != ":0" { //nolint:revive // the round trip is the wait
			}
		default:
			for range replies {
				got := strings.TrimRight(c.Receive(), " ")
				if n := nonces.FindString(got); n != "" {
					nonce = n
				}
				if !matches(line, got) {
					t.Errorf("line %d: want %s, got %s", number+1, line, got)
				}
				if !real { // a fake was not asked
					hear(asked, got)
				}
			}
		}
	}
}

var scriptNames = map[string]int{
	"release": release, "extend": extend, "queue": queue, "acquire": fenceAcquire, "fence-extend": fenceExtend, "member": fenceMember,
	"share": sharedAcquire, "share-extend": sharedExtend, "unshare": sharedRelease, "shared-look": sharedLook,
}

// nonces are a fleet and "n" with the time of the server.
var nonces = regexp.MustCompile(`[fg+]+/n\.\d+`)

var numbered = regexp.MustCompile(`^(.*)#(\d+)$`)

// expand turns a line into the words of a command.
func expand(line string, number int) (words []string) {
	for _, word := range strings.Fields(line) {
		if m := numbered.FindStringSubmatch(word); m != nil {
			n, _ := strconv.Atoi(m[2])
			for i := range n {
				words = append(words, m[1]+strconv.Itoa(i+1))
			}
			continue
		}
		if strings.HasPrefix(word, "{") {
			name, sha := strings.CutSuffix(strings.Trim(word, "{}"), "-sha")
			if which, known := scriptNames[name]; known {
				word = texts[which]
				if sha {
					word = digests[which]
				}
				words = append(words, word)
				continue
			}
		}
		words = append(words, strings.NewReplacer("{empty}", "", "{space}", " ", "{long}", strings.Repeat("x", 500), "#", strconv.Itoa(number)).Replace(word))
	}
	return words
}

var (
	intRange = regexp.MustCompile(`^:(\d+)\.\.(\d+)$`)
	code     = regexp.MustCompile(`^-[A-Z]+$`)
	repeated = regexp.MustCompile(`^(.*\[)(\S+)x(\d+)\]$`)
)

// matches compares a reply with the wanted one: the same text, or
//
//	-ERR       any error with this code
//	:1..100    an integer in this range, within an array too
//	*[:1x128]  an array of the same element so many times
//	…          any text at all, within a longer one too
//	ended      the end of the connection, however abrupt
func matches(want, got string) bool {
	if want == "ended" {
		return got == "closed" || got == "reset"
	}
	if code.MatchString(want) {
		return got == want || strings.HasPrefix(got, want+" ")
	}
	if m := intRange.FindStringSubmatch(want); m != nil {
		low, _ := strconv.Atoi(m[1])
		high, _ := strconv.Atoi(m[2])
		n, err := strconv.Atoi(strings.TrimPrefix(got, ":"))
		return err == nil && strings.HasPrefix(got, ":") && low <= n && n <= high
	}
	if strings.HasPrefix(want, "*[") && strings.Contains(want, "..") {
		wanted, words := strings.Fields(strings.Trim(want, "*[]")), strings.Fields(strings.Trim(got, "*[]"))
		return slices.EqualFunc(wanted, words, matches)
	}
	if m := repeated.FindStringSubmatch(want); m != nil {
		n, _ := strconv.Atoi(m[3])
		want = m[1] + strings.TrimSuffix(strings.Repeat(m[2]+" ", n), " ") + "]"
	}
	first, others, open := strings.Cut(want, "…")
	if !open {
		return want == got
	}
	if !strings.HasPrefix(got, first) {
		return false
	}
	got = got[len(first):]
	parts := strings.Split(others, "…")
	for _, part := range parts[:len(parts)-1] {
		_, after, found := strings.Cut(got, part)
		if !found {
			return false
		}
		got = after
	}
	return strings.HasSuffix(got, parts[len(parts)-1])
}
