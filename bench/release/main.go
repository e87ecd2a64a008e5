// Command release makes a release of redlock from a checkout: programs for each system in archives, packages of Debian and of RPM,
// an image for containers, a bill of materials, checksums, and the text of the release.
//
//	go run . -o out          # of a commit with its tag, a clean tree and a dated section in CHANGELOG.md
//	go run . -dry -o out     # of the tree as it is: everything but that
//
// The same commit gives the same bytes with the same Go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	root := flag.String("C", filepath.Join("..", ".."), "the `folder` of the checkout")
	out := flag.String("o", "", "the `folder` for the files, which must be empty or new")
	isDry := flag.Bool("dry", false, "of any tree, without a tag; its version ends in -dev")
	only := flag.String("only", "", "a `list` of platforms, such as linux/amd64,windows/amd64; default all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(ctx, *root, *out, *only, *isDry); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, root, out, only string, isDry bool) error {
	if out == "" {
		return fmt.Errorf("-o wants a folder")
	}
	if there, _ := os.ReadDir(out); len(there) > 0 {
		return fmt.Errorf("%s has files already", out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	s, err := readSource(ctx, root, isDry)
	if err != nil {
		return err
	}
	platforms := allPlatforms
	if only != "" {
		platforms = nil
		for name := range strings.SplitSeq(only, ",") {
			system, arch, _ := strings.Cut(name, "/")
			platforms = append(platforms, platform{system, arch})
		}
	}
	r, err := build(ctx, s, platforms)
	if err != nil {
		return err
	}
	if err := r.write(out); err != nil {
		return err
	}
	fmt.Printf("%s: %d files of redlock %s\n", out, len(r.files), s.version)
	return nil
}
