package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// made is a release of this tree for this machine, as linux alone has all forms.
type made struct {
	*release
	source   *source
	programs map[platform][]byte
	texts    pages
}

var here = platform{"linux", runtime.GOARCH}

var makeOnce = sync.OnceValues(func() (*made, error) {
	s, err := readSource(context.Background(), filepath.Join("..", ".."), true)
	if err != nil {
		return nil, err
	}
	m := &made{source: s}
	m.programs, m.texts, err = compileAll(context.Background(), s, []platform{here})
	if err != nil {
		return nil, err
	}
	m.release, err = assemble(s, []platform{here}, m.programs, &m.texts)
	return m, err
})

func makeRelease(t *testing.T) *made {
	if runtime.GOOS != "linux" {
		t.Skip("packages are for linux")
	}
	m, err := makeOnce()
	require.NoError(t, err)
	return m
}

// of is the release with another version.
func (m *made) of(t *testing.T, version string) *release {
	s := *m.source
	s.version = version
	r, err := assemble(&s, []platform{here}, m.programs, &m.texts)
	require.NoError(t, err)
	return r
}

// find returns the one file with a name that ends so.
func (r *release) find(t *testing.T, suffix string) []byte {
	var found []string
	for _, name := range r.names {
		if strings.HasSuffix(name, suffix) {
			found = append(found, name)
		}
	}
	require.Len(t, found, 1, "%s of %s", suffix, r.names)
	return r.files[found[0]]
}

func gunzip(t *testing.T, data []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	data, err = io.ReadAll(z)
	require.NoError(t, err)
	return data
}

// untar returns an archive's files by their names, and writes them into a folder if there is one.
func untar(t *testing.T, data []byte, dir string) map[string][]byte {
	files := map[string][]byte{}
	for archive := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		files[h.Name], err = io.ReadAll(archive)
		require.NoError(t, err)
		name := filepath.Join(dir, h.Name)
		switch {
		case dir == "":
		case h.Typeflag == tar.TypeDir:
			require.NoError(t, os.Mkdir(name, 0o755))
		default:
			require.NoError(t, os.WriteFile(name, files[h.Name], h.FileInfo().Mode()))
		}
	}
}

// TestRelease: a release has all forms, the same commit gives the same bytes, and checksums and the bill of materials fit.
func TestRelease(t *testing.T) {
	m := makeRelease(t)
	again := m.of(t, m.source.version)
	require.Equal(t, m.names, again.names)
	for _, name := range m.names {
		require.True(t, bytes.Equal(m.files[name], again.files[name]), name)
	}
	dir := t.TempDir()
	require.NoError(t, m.write(dir))
	sums := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	sums.Dir = dir
	out, err := sums.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, 5, strings.Count(string(out), ": OK"), "%s", out)

	files := untar(t, gunzip(t, m.find(t, here.String()+".tar.gz")), "")
	for _, name := range []string{"redlock", "LICENSE", "CHANGES.md", "redlock.1", "completions/redlock.bash", "completions/_redlock", "completions/redlock.fish"} {
		require.NotEmpty(t, files["redlock_"+m.source.version+"_"+here.String()+"/"+name], name)
	}
	var bill struct {
		BOMFormat  string
		Components []struct{ Name, Version, PURL string }
	}
	require.NoError(t, json.Unmarshal(m.find(t, "sbom.cdx.json"), &bill))
	require.Equal(t, "CycloneDX", bill.BOMFormat)
	var names []string
	for _, c := range bill.Components {
		names = append(names, c.Name)
	}
	require.Subset(t, names, []string{"stdlib", "github.com/valyala/bytebufferpool"})
	require.NotContains(t, names, "github.com/stretchr/testify", "of tests")
	require.Contains(t, string(m.files["NOTES.md"]), "### Added")
	require.NotContains(t, string(m.files["NOTES.md"]), "\n## ")
}

// TestRefused: a release needs a tag, and one version in all places.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	run := func(command string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	read := func(want string) {
		t.Helper()
		_, err := readSource(t.Context(), dir, false)
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
	run(`git init -q; mkdir -p internal/base/build; echo MIT > LICENSE
		printf 'package build\n\nconst Version = "0.2.0"\n' > internal/base/build/build.go
		printf '# Changelog\n\n## [0.1.0] - 2026-01-01\n\nfirst\n' > CHANGELOG.md; git add .; git commit -qm one`)
	read(`the source is version "0.2.0"`)
	run(`printf '# Changelog\n\n## [0.2.0] - not released yet\n\nsecond\n\n## [0.1.0] - 2026-01-01\n\nfirst\n' > CHANGELOG.md; git commit -qam two`)
	read("want v0.2.0")
	run("git tag v0.2.0")
	read("want a day")
	run(`sed -i 's/not released yet/2026-02-02/' CHANGELOG.md`)
	read("files were changed")
	run("git commit -qam three; git tag -f v0.2.0 >/dev/null")
	read("")
	s, err := readSource(t.Context(), dir, false)
	require.NoError(t, err)
	require.Equal(t, "0.2.0", s.version)
	require.Equal(t, "second\n", s.notes)
}

// TestPackages: the tools of Debian and of RPM read the packages, and find what belongs to whom.
func TestPackages(t *testing.T) {
	m, dir := makeRelease(t), t.TempDir()
	deb, rpm := filepath.Join(dir, "redlock.deb"), filepath.Join(dir, "redlock.rpm")
	require.NoError(t, os.WriteFile(deb, m.find(t, ".deb"), 0o644))
	require.NoError(t, os.WriteFile(rpm, m.find(t, ".rpm"), 0o644))
	installed := []string{"/usr/bin/redlock", "/usr/share/man/man1/redlock.1.gz", "/usr/lib/systemd/system/redlock.service",
		"/usr/lib/systemd/system/redlock-leader@.service", "/etc/redlock/redlock.conf", "/etc/redlock/leader.d", "/usr/share/bash-completion/completions/redlock"}
	t.Run("deb", func(t *testing.T) {
		list, control := tool(t, "dpkg-deb", "-c", deb), tool(t, "dpkg-deb", "-I", deb)
		for _, name := range installed {
			require.Contains(t, list, " ."+name)
		}
		require.Regexp(t, `-rw-r----- root/root .* \./etc/redlock/redlock\.conf`, list)
		require.Contains(t, control, "Version: "+distributed(m.source.version)+"\n")
		require.Equal(t, "/etc/redlock/redlock.conf\n", tool(t, "dpkg-deb", "-I", deb, "conffiles"))
		tool(t, "dpkg", "--compare-versions", distributed("0.1.0-dev"), "lt", distributed("0.1.0"))
	})
	t.Run("rpm", func(t *testing.T) {
		list := tool(t, "rpm", "-qp", "--qf", `[%{FILENAMES} %{FILEMODES:perms} %{FILEUSERNAME}:%{FILEGROUPNAME} %{FILEFLAGS:fflags}\n]`, rpm)
		for _, name := range installed {
			require.Contains(t, list, name+" ")
		}
		require.Contains(t, list, "/etc/redlock/redlock.conf -rw-r----- root:redlock cn\n")
		require.Contains(t, tool(t, "rpm", "-qp", "--scripts", rpm), "try-restart redlock.service")
		root := t.TempDir()
		tool(t, "rpm", "--root", root, "--nodeps", "--noscripts", "--ignorearch", "-i", rpm)
		require.FileExists(t, filepath.Join(root, "usr/bin/redlock"))
		tool(t, "rpm", "--root", root, "--nodeps", "--noscripts", "-V", "redlock")
	})
}

// tool runs a program that reads packages, and skips a test without it.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skip(name, " is not here")
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, args, out)
	return string(out)
}

// TestUnits: systemd finds the server little exposed.
func TestUnits(t *testing.T) {
	out := tool(t, "systemd-analyze", "security", "--no-pager", "--offline=true", "files/redlock.service")
	m := regexp.MustCompile(`Overall exposure level for redlock.service: ([0-9.]+)`).FindStringSubmatch(out)
	require.NotNil(t, m, out)
	exposure, err := strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	require.Less(t, exposure, 2.5)
	t.Log("exposure ", exposure)
}
