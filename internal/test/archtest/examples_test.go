package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// standard are methods that package fmt, errors, slog or encoding calls: users see their effect, and call none.
var standard = map[string]bool{"Error": true, "Unwrap": true, "String": true, "Format": true, "MarshalText": true}

// unshown are names of package conn that the engine stands on.
var unshown = strings.Fields(`
	Arm AwaitFirst Away Batch CanBlock Check CredentialsTimeout Drain Early ErrEmptied ErrIdle Fault Fleet Form Forms History Len Node Owner
	Send SendTo SetForm Sweep Wait Wake Want`)

// TestExamples: each exported name of the packages that users call is used in an example that runs.
func TestExamples(t *testing.T) {
	for _, dir := range []string{".", "conn"} {
		exported, used := map[string]bool{}, map[string]bool{}
		files, err := fs.Glob(repository, path.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, name := range files {
			src, err := fs.ReadFile(repository, name)
			require.NoError(t, err)
			f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments)
			require.NoError(t, err)
			if strings.HasSuffix(name, "_test.go") {
				addUses(used, f)
			} else {
				addExported(exported, f)
			}
		}
		maps.DeleteFunc(exported, func(name string, _ bool) bool { return used[name] || dir == "conn" && slices.Contains(unshown, name) })
		require.Empty(t, slices.Sorted(maps.Keys(exported)), "in no example of %s with an Output: add one to an example_test.go, or, where only the engine uses the name, add it to unshown", dir)
	}
}

// addExported adds the exported names that f declares on its top level.
func addExported(names map[string]bool, f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || isPublic(d.Recv.List[0].Type) && !standard[d.Name.Name]) {
				names[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[spec.Name.Name] = spec.Name.IsExported()
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names[name.Name] = name.IsExported()
					}
				}
			}
		}
	}
	maps.DeleteFunc(names, func(_ string, isExported bool) bool { return !isExported })
}

func isPublic(receiver ast.Expr) bool {
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	name, ok := receiver.(*ast.Ident)
	return ok && name.IsExported()
}

// addUses adds the names behind a dot in the examples of f with an output: those without one are compiled, not run. A
// declaration beside them, such as a type with methods, is theirs.
func addUses(names map[string]bool, f *ast.File) {
	hasExamples := false
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		hasExamples = hasExamples || ok && strings.HasPrefix(fn.Name.Name, "Example")
	}
	if !hasExamples {
		return
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Example") && !hasOutput(f, fn) {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				names[sel.Sel.Name] = true
			}
			return true
		})
	}
}

func hasOutput(f *ast.File, fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Comments, func(c *ast.CommentGroup) bool {
		return fn.Pos() < c.Pos() && c.End() < fn.End() && strings.Contains(strings.ToLower(c.Text()), "output:")
	})
}

// TestShownTypes: go doc shows the fields of each exported type. An alias of another package's type hides them, and so does a
// field of such a type.
func TestShownTypes(t *testing.T) {
	src, err := fs.ReadFile(repository, "redlock.go")
	require.NoError(t, err)
	f, err := parser.ParseFile(token.NewFileSet(), "redlock.go", src, 0)
	require.NoError(t, err)
	others := map[string]bool{}
	for _, i := range f.Imports {
		if name := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(name, module+"/") {
			others[path.Base(name)] = true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		typ, is := n.(*ast.TypeSpec)
		if !is || !typ.Name.IsExported() {
			return true
		}
		require.False(t, typ.Assign.IsValid(), "%s is an alias: define it here", typ.Name)
		ast.Inspect(typ.Type, func(n ast.Node) bool {
			if field, is := n.(*ast.Field); is && len(field.Names) > 0 && !field.Names[0].IsExported() {
				return false
			}
			if of, is := n.(*ast.SelectorExpr); is {
				require.False(t, others[of.X.(*ast.Ident).Name], "a field of %s has a type of package %s: define one here", typ.Name, of.X)
			}
			return true
		})
		return false
	})
}
