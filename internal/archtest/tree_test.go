package archtest

import (
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// file is a Go file of the repository.
type file struct {
	path   string // relative to the root, with slashes
	src    []byte
	nested bool // in a nested module
}

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// goFiles returns all Go files below the root of tree, but for those in
// directories that the go command does not look into either.
func goFiles(tree fs.FS) ([]file, error) {
	var files []file
	nested := "" // the nested module the walk is in, with a slash at its end
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && ignored(entry.Name()) {
				return fs.SkipDir
			}
			inside := nested != "" && strings.HasPrefix(name, nested)
			if _, err := fs.Stat(tree, path.Join(name, "go.mod")); err == nil && name != "." && !inside {
				nested = name + "/"
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		inside := nested != "" && strings.HasPrefix(name, nested)
		files = append(files, file{name, src, inside})
		return nil
	})
	return files, err
}

// ignored tells whether the go command ignores a directory of that name.
func ignored(dir string) bool {
	return dir == "testdata" || strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_")
}

func TestGoFiles(t *testing.T) {
	empty := &fstest.MapFile{}
	files, err := goFiles(fstest.MapFS{
		"go.mod":                  empty,
		"redlock.go":              empty,
		"README.md":               empty,
		"bench/main.go":           empty,
		"bench/peers/a/b.go":      empty,
		"bench/peers/go.mod":      empty,
		"bench/peers/peers.go":    empty,
		"bench/peers/deep/go.mod": empty,
		"bench/peers/deep/c.go":   empty,
		"bench/peersless.go":      empty,
		"conn/conn_test.go":       empty,
		"conn/testdata/bad.go":    empty,
		".ci/tool.go":             empty,
		"_old/old.go":             empty,
	})
	require.NoError(t, err)
	found := map[string]bool{}
	for _, f := range files {
		found[f.path] = f.nested
	}
	require.Equal(t, map[string]bool{
		"redlock.go":            false,
		"bench/main.go":         false,
		"bench/peersless.go":    false,
		"bench/peers/peers.go":  true,
		"bench/peers/a/b.go":    true,
		"bench/peers/deep/c.go": true,
		"conn/conn_test.go":     false,
	}, found)
}
