package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// around is what the code of the README stands in.
const around = `package readme

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
)

var (
	_       = errors.Join
	_       = time.Second
	_       *redlock.Client
	ctx     context.Context
	nodes   []string
	db      *sql.DB
	state   string
	update  func(ctx context.Context, query string, arguments ...any) error
)

func work(context.Context) error { return nil }
`

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestReadmeCompiles: each block of Go in the README is the body of a function that compiles.
func TestReadmeCompiles(t *testing.T) {
	text, err := fs.ReadFile(repository, "README.md")
	require.NoError(t, err)
	blocks := goBlock.FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, blocks)
	source := around
	for i, block := range blocks {
		source += fmt.Sprintf("\nfunc body%d() (err error) {\n%s\nreturn err\n}\n", i, block[1])
	}
	require.Empty(t, compile(t, source))
	require.Contains(t, compile(t, strings.Replace(source, "redlock.Config{", "redlock.Konfig{", 1)), "undefined: redlock.Konfig")
}

// compile returns what the go command has against a file of Go. What the file imports is in the
// build cache if it is compiled as this test was: with the race detector or without.
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
