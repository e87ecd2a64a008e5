package archtest

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"regexp"
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
	_       errorer = errors.Join
	_               = time.Second
	ctx     context.Context
	nodes   []string
	db      *sql.DB
	state   string
	errLate error
)

type errorer = func(...error) error

func work(context.Context) error { return nil }
`

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// TestReadmeCompiles: each block of Go in the README is the body of a function that compiles.
func TestReadmeCompiles(t *testing.T) {
	text, err := fs.ReadFile(repository, "README.md")
	require.NoError(t, err)
	blocks := goBlock.FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, blocks)
	set := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(set, "source", nil)}
	for _, block := range blocks {
		source := around + "\nfunc body() (err error) {\n" + block[1] + "\nreturn err\n}\nvar _ *redlock.Client\n"
		f, err := parser.ParseFile(set, "README.md", source, 0)
		require.NoError(t, err, block[1])
		_, err = config.Check("readme", set, []*ast.File{f}, nil)
		require.NoError(t, err, block[1])
	}
}
