package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/redlock-go/redlock/bench/release/pack"
)

// own is what the packages have beside the program and its pages.
//
//go:embed files
var own embed.FS

// file reads one of them.
func file(name string) []byte {
	data, err := own.ReadFile("files/" + name)
	if err != nil {
		panic(err) // it is in this program
	}
	return data
}

// release is files by their names.
type release struct {
	names []string
	files map[string][]byte
}

func (r *release) add(name string, data []byte) {
	r.names = append(r.names, name)
	r.files[name] = data
}

// pages is what the program says of itself.
type pages struct{ man, bash, zsh, fish []byte }

// build makes the files of a release.
func build(ctx context.Context, s *source, platforms []platform) (*release, error) {
	programs, texts, err := compileAll(ctx, s, platforms)
	if err != nil {
		return nil, err
	}
	return assemble(s, platforms, programs, &texts)
}

// compileAll makes what depends on Go: the programs, and the pages that the program of this machine writes.
func compileAll(ctx context.Context, s *source, platforms []platform) (programs map[platform][]byte, texts pages, err error) {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, texts, err
	}
	defer os.RemoveAll(dir)
	programs = map[platform][]byte{}
	for _, p := range platforms {
		if programs[p], err = s.compile(ctx, p, dir); err != nil {
			return nil, texts, err
		}
	}
	say, err := s.own(ctx, dir)
	if err != nil {
		return nil, texts, err
	}
	for _, page := range []struct {
		of   *[]byte
		args []string
	}{
		{&texts.man, []string{"man"}}, {&texts.bash, []string{"completion", "bash"}},
		{&texts.zsh, []string{"completion", "zsh"}}, {&texts.fish, []string{"completion", "fish"}},
	} {
		if *page.of, err = say(page.args...); err != nil {
			return nil, texts, fmt.Errorf("redlock %s: %w", strings.Join(page.args, " "), err)
		}
	}
	return programs, texts, nil
}

// assemble puts programs and pages into all forms.
func assemble(s *source, platforms []platform, programs map[platform][]byte, texts *pages) (*release, error) {
	r := &release{files: map[string][]byte{}}
	readers, digests := map[string]io.ReaderAt{}, map[string][sha256.Size]byte{}
	layers, arches := map[string][]pack.Entry{}, []string{}
	for _, p := range platforms {
		name := "redlock_" + s.version + "_" + p.String()
		data, err := s.archive(p, name, programs[p], texts)
		if err != nil {
			return nil, err
		}
		r.add(name+suffix(p), data)
		readers[name], digests[name] = bytes.NewReader(programs[p]), sha256.Sum256(programs[p])
		if p.system != "linux" {
			continue
		}
		files := installed(programs[p], texts, s)
		deb, err := pack.Deb(s.describe(p.arch), files)
		if err != nil {
			return nil, err
		}
		r.add(fmt.Sprintf("redlock_%s_%s.deb", distributed(s.version), p.arch), deb)
		rpm, err := pack.RPM(s.describe(p.arch), files)
		if err != nil {
			return nil, err
		}
		r.add(fmt.Sprintf("redlock-%s.%s.rpm", distributed(s.version), map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[p.arch]), rpm)
		layers[p.arch], arches = rootOf(programs[p], s), append(arches, p.arch)
	}
	if len(arches) > 0 {
		image, err := pack.OCI(&pack.Image{
			User: "65532:65532", Entrypoint: []string{"/usr/bin/redlock"}, Args: []string{"serve", "-listen", ":6380", "-metrics", ":9121"},
			Ports: []string{"6380/tcp", "9121/tcp"}, At: s.at,
			Labels: map[string]string{"org.opencontainers.image.source": address, "org.opencontainers.image.version": s.version,
				"org.opencontainers.image.revision": s.commit, "org.opencontainers.image.licenses": "MIT"},
		}, s.version, layers, arches)
		if err != nil {
			return nil, err
		}
		r.add("redlock_"+s.version+"_image.tar", image)
	}
	bill, err := pack.SBOM("redlock", s.version, readers, digests, s.at)
	if err != nil {
		return nil, err
	}
	r.add("redlock_"+s.version+"_sbom.cdx.json", bill)
	sums := ""
	for _, name := range r.names {
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(r.files[name]), name)
	}
	r.add("SHA256SUMS", []byte(sums))
	r.add("NOTES.md", []byte(s.notes))
	return r, nil
}

func (r *release) write(dir string) error {
	for name, data := range r.files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

const address = "https://github.com/redlock-go/redlock"

// distributed is a version as packages sort it: what comes before a release is less than it.
func distributed(version string) string { return strings.Replace(version, "-", "~", 1) }

func suffix(p platform) string {
	if p.system == "windows" {
		return ".zip"
	}
	return ".tar.gz"
}

// archive has the program and its pages in a folder of its name.
func (s *source) archive(p platform, name string, program []byte, texts *pages) ([]byte, error) {
	binary, write := "redlock", pack.TarGz
	if p.system == "windows" {
		binary, write = "redlock.exe", pack.Zip
	}
	entries := []pack.Entry{
		{Path: binary, Mode: 0o755, Data: program}, {Path: "LICENSE", Mode: 0o644, Data: s.license},
		{Path: "CHANGES.md", Mode: 0o644, Data: []byte(s.notes)}, {Path: "redlock.1", Mode: 0o644, Data: texts.man},
		{Path: "completions/redlock.bash", Mode: 0o644, Data: texts.bash}, {Path: "completions/_redlock", Mode: 0o644, Data: texts.zsh},
		{Path: "completions/redlock.fish", Mode: 0o644, Data: texts.fish},
	}
	for i := range entries {
		entries[i].Path = name + "/" + entries[i].Path
	}
	return write(pack.Folders(entries), s.at)
}

// installed is the files of a package.
func installed(program []byte, texts *pages, s *source) []pack.Entry {
	license := fmt.Appendf(nil, "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nSource: %s\n\nFiles: *\nCopyright: the authors of redlock\nLicense: MIT\n %s\n",
		address, strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(string(s.license)), "\n\n", "\n.\n"), "\n", "\n "))
	return []pack.Entry{
		{Path: "usr/bin/redlock", Mode: 0o755, Data: program},
		{Path: "usr/share/man/man1/redlock.1.gz", Mode: 0o644, Data: pack.Compressed(texts.man)},
		{Path: "usr/share/bash-completion/completions/redlock", Mode: 0o644, Data: texts.bash},
		{Path: "usr/share/zsh/vendor-completions/_redlock", Mode: 0o644, Data: texts.zsh},
		{Path: "usr/share/fish/vendor_completions.d/redlock.fish", Mode: 0o644, Data: texts.fish},
		{Path: "usr/share/doc/redlock/copyright", Mode: 0o644, Data: license},
		{Path: "usr/share/doc/redlock/changelog.gz", Mode: 0o644, Data: pack.Compressed([]byte(s.notes))},
		{Path: "usr/lib/systemd/system/redlock.service", Mode: 0o644, Data: file("redlock.service")},
		{Path: "usr/lib/systemd/system/redlock-leader@.service", Mode: 0o644, Data: file("redlock-leader@.service")},
		{Path: "usr/lib/sysusers.d/redlock.conf", Mode: 0o644, Data: file("sysusers.conf")},
		{Path: "etc/redlock/leader.d/", Mode: 0o755},
		{Path: "etc/redlock/redlock.conf", Mode: 0o640, Group: "redlock", Data: file("redlock.conf"), IsConfig: true},
	}
}

// describe is the package for an architecture.
func (s *source) describe(arch string) *pack.Package {
	scripts := map[string]string{}
	for _, name := range []string{"postinst", "prerm", "postrm", "pre", "post", "preun", "postun"} {
		scripts[name] = string(file(name))
	}
	return &pack.Package{
		Name: "redlock", Version: distributed(s.version), Arch: arch, Section: "net", Requires: "passwd", Scripts: scripts, At: s.at,
		Maintainer: "The authors of redlock <redlock@localhost>", URL: address,
		Summary: "distributed locks on a majority of Redis or Valkey masters",
		Text: "redlock run holds a lock while a program runs, redlock serve lets Redis clients\n" +
			"of any language lock, and the other commands are for the operators of the masters.",
	}
}

// rootOf is the root of a container: the program, the authorities that sign certificates, and a user.
func rootOf(program []byte, s *source) []pack.Entry {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file cannot say it
			_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // to memory
		}
	}
	return []pack.Entry{
		{Path: "usr/bin/redlock", Mode: 0o755, Data: program},
		{Path: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Data: roots.Bytes()},
		{Path: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0::/:/sbin/nologin\nredlock:x:65532:65532::/:/sbin/nologin\n")},
		{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nredlock:x:65532:\n")},
		{Path: "usr/share/doc/redlock/LICENSE", Mode: 0o644, Data: s.license},
	}
}
