package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// tree is the module, or a mutant of it: some files have another text.
type tree struct {
	root    string
	dir     string // of the overlay and of binaries
	changed map[string]string
}

// read returns the text of a file.
func (t tree) read(file string) (string, error) {
	if text, ok := t.changed[file]; ok {
		return text, nil
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

// dirs has the results of dirOf.
var dirs sync.Map

// dirOf finds the folder of a package by the end of its path, such as "engine" or "cmd/redlock", in
// any wing of the module.
func (t tree) dirOf(pkg string) (dir string, err error) {
	if known, ok := dirs.Load(pkg); ok { // all trees have the same
		return known.(string), nil
	}
	defer func() {
		if err == nil {
			dirs.Store(pkg, dir)
		}
	}()
	var found []string
	err = filepath.WalkDir(t.root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata":
			if path != t.root {
				return filepath.SkipDir
			}
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != t.root {
			return filepath.SkipDir // another module
		}
		if path != t.root && strings.HasSuffix(filepath.ToSlash(path), "/"+pkg) {
			if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) > 0 {
				found = append(found, path)
			}
		}
		return nil
	})
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%d packages end with %s", len(found), pkg)
	}
	if err != nil {
		return "", err
	}
	return filepath.Rel(t.root, found[0])
}

// place is a part of a file: all of it, or one declaration.
type place struct {
	file, text string // the text of the file
	from, to   int
	receiver   string
	isFunction bool
}

// places are the declarations of a name in the files of a package: functions, methods of any type
// or of Type.name, types, variables and constants. A file other than Go is one place, by its name.
func (t tree) places(pkg, name string) (places []place, err error) {
	dir, err := t.dirOf(pkg)
	if err != nil {
		return nil, err
	}
	pattern := "*.go"
	if strings.HasSuffix(name, ".lua") {
		pattern = name
	}
	files, err := filepath.Glob(filepath.Join(t.root, dir, pattern))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := t.read(file)
		if err != nil {
			return nil, err
		}
		if pattern == name {
			places = append(places, place{file: file, text: text, to: len(text)})
			continue
		}
		if _, last, isMethod := strings.Cut(name, "."); !strings.Contains(text, name) && !(isMethod && strings.Contains(text, last)) {
			continue // most files, unparsed
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			if isOf, receiver := declares(d, name); isOf {
				from, to := fset.Position(d.Pos()).Offset, fset.Position(d.End()).Offset
				_, isFunction := d.(*ast.FuncDecl)
				places = append(places, place{file: file, text: text, from: from, to: to, receiver: receiver, isFunction: isFunction})
			}
		}
	}
	return places, nil
}

// declares reports whether a declaration is of a name, and returns a method's own name for its
// receiver.
func declares(d ast.Decl, name string) (isOf bool, receiver string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && len(d.Recv.List[0].Names) > 0 {
			receiver = d.Recv.List[0].Names[0].Name
		}
		owner, method, isMethod := strings.Cut(name, ".")
		if !isMethod {
			return d.Name.Name == name, receiver
		}
		return d.Name.Name == method && d.Recv != nil && strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*") == owner, receiver
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				isOf = isOf || s.Name.Name == name
			case *ast.ValueSpec:
				isOf = isOf || slices.ContainsFunc(s.Names, func(n *ast.Ident) bool { return n.Name == name })
			}
		}
	}
	return isOf, ""
}

// line is a line of code, with its place in the text.
type line struct {
	code     string
	from, to int
}

// lines are the code lines of a text, without their margins and comments.
func lines(text string, offset int) (all []line) {
	for _, l := range strings.SplitAfter(text, "\n") {
		code := l
		if i := strings.Index(code, "//"); i >= 0 && (i == 0 || !strings.ContainsAny(code[:i], "\"`") || strings.HasPrefix(code[i-1:], " //")) {
			code = code[:i]
		}
		code = strings.TrimSpace(code)
		if code != "" {
			all = append(all, line{code, offset, offset + len(l)})
		}
		offset += len(l)
	}
	return all
}

// edit is a hunk in its place.
type edit struct {
	file, text  string // the new text
	declaration string // the old one
	// The lines that run if the hunk matters: all of the package's, where from is 0.
	from, to int
}

// apply finds the code of a hunk in its places, once.
func (t tree) apply(h hunk) (e edit, err error) {
	places, err := t.places(h.pkg, h.name)
	if err != nil {
		return edit{}, err
	}
	found := 0
	for _, p := range places {
		named := func(code string) string { return strings.ReplaceAll(code, "@", p.receiver) }
		want, have := lines(named(h.old), 0), lines(p.text[p.from:p.to], p.from)
		for i := range len(have) - len(want) + 1 {
			if slices.EqualFunc(want, have[i:i+len(want)], func(a, b line) bool { return a.code == b.code }) {
				found++
				from, to := have[i].from, have[i+len(want)-1].to
				e = edit{file: p.file, text: p.text[:from] + named(h.new) + p.text[to:], declaration: p.text[p.from:p.to]}
				if p.isFunction {
					if branch.MatchString(p.text[from:to]) {
						from, to = p.from, p.to
					}
					e.from, e.to = 1+strings.Count(p.text[:from], "\n"), 1+strings.Count(p.text[:to-1], "\n")
				}
			}
		}
	}
	if found != 1 || h.old == h.new {
		return edit{}, fmt.Errorf("found %d times in %s %s", found, h.pkg, h.name)
	}
	return e, nil
}

// branch is of lines that decide what else runs: they may matter though what follows them does not run.
var branch = regexp.MustCompile(`(?m)^\s*(case |default:|\})`)
