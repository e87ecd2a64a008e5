package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// around is the surroundings of the README's code.
const around = `package readme

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
)

var (
	_      = errors.Join
	_      = time.Second
	client *redlock.Client
	ctx    context.Context
	db     *sql.DB
	state  string
)

func work(context.Context) error { return nil }
`

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestReadmeCompiles: each block of Go in the README is a program, or the body of a function, and compiles. No line of code
// is cut off in a page of 80 columns, tabs of four.
func TestReadmeCompiles(t *testing.T) {
	text, err := fs.ReadFile(repository, "README.md")
	require.NoError(t, err)
	isCode := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "```") {
			isCode = !isCode
		}
		if isCode {
			require.LessOrEqual(t, len([]rune(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    "))), 80, "a line of code in README.md is cut off in a page of 80 columns, tabs of four: break it\n%s", line)
		}
	}
	blocks := goBlock.FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, blocks)
	source := around
	for i, block := range blocks {
		if strings.HasPrefix(block[1], "package") {
			require.Empty(t, compile(t, block[1]))
			continue
		}
		source += fmt.Sprintf("\nfunc body%d() error {\n%s\nreturn err\n}\n", i, block[1])
	}
	require.Empty(t, compile(t, source))
	require.Contains(t, compile(t, strings.Replace(source, "redlock.LostError", "redlock.LastError", 1)), "undefined: redlock.LastError")
}

// compile returns the complaints of the go command about a file of Go. The file's imports are in
// the build cache if it is compiled like this test: with the race detector or without.
func compile(t *testing.T, source string) string {
	name := filepath.Join(t.TempDir(), "readme.go")
	require.NoError(t, os.WriteFile(name, []byte(source), 0o600))
	args := []string{"build", "-o", os.DevNull}
	if b, ok := debug.ReadBuildInfo(); ok && slices.Contains(b.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	problems, _ := exec.CommandContext(t.Context(), "go", append(args, name)...).CombinedOutput()
	return string(problems)
}

var (
	link     = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	heading  = regexp.MustCompile("(?m)^#+ (.*)$")
	unnamed  = regexp.MustCompile(`[^\w\- ]`) // in the anchor of a heading
	testName = regexp.MustCompile("`(Test[A-Z][A-Za-z]+)`")
)

// TestPages: every link of a page has its target, and every test named there exists.
func TestPages(t *testing.T) {
	tests, pages := "", []string{}
	require.NoError(t, fs.WalkDir(repository, ".", func(name string, _ fs.DirEntry, err error) error {
		switch {
		case strings.HasSuffix(name, ".md") && !strings.Contains(name, "/node_modules/"):
			pages = append(pages, name)
		case strings.HasSuffix(name, "_test.go"):
			src, err := fs.ReadFile(repository, name)
			tests += string(src)
			return err
		}
		return err
	}))
	for _, page := range pages {
		text, err := fs.ReadFile(repository, page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target := page
			if m[1] != "" {
				target = path.Join(path.Dir(page), m[1])
			}
			_, err := fs.Stat(repository, target)
			require.NoError(t, err, "%s links to %s, and there is no such file: mend the link", page, m[1])
			if m[2] != "" {
				there, err := fs.ReadFile(repository, target)
				require.NoError(t, err)
				var anchors []string
				for _, h := range heading.FindAllStringSubmatch(string(there), -1) {
					anchors = append(anchors, strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
				}
				require.Contains(t, anchors, m[2], "%s links to a heading of %s that is not there: mend the link", page, target)
			}
		}
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			require.True(t, strings.Contains(tests, "\nfunc "+m[1]+"("), "%s names %s, and there is no such test: after a rename, rename it there too", page, m[1])
		}
	}
}
