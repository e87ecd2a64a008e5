// Package pack writes files into the forms in which programs are given away: archives, packages of Debian and of RPM, images of
// containers. The same files give the same bytes: their time is a parameter.
package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// Entry is a file, or a folder if its path ends in a slash.
type Entry struct {
	Path     string // from the root, without a slash in front
	Mode     int64
	Group    string // "" is root's
	Data     []byte
	IsConfig bool // of the administrator, who may change it: a new package leaves it as it is
}

func (e *Entry) isFolder() bool { return strings.HasSuffix(e.Path, "/") }

// Folders adds the folders above entries, and sorts all of them.
func Folders(entries []Entry) []Entry {
	known := map[string]bool{}
	for _, e := range entries {
		known[strings.TrimSuffix(e.Path, "/")] = true
	}
	all := slices.Clone(entries)
	for _, e := range entries {
		for dir := path.Dir(strings.TrimSuffix(e.Path, "/")); dir != "." && !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			all = append(all, Entry{Path: dir + "/", Mode: 0o755})
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// writeTar writes entries, each with a prefix before its path.
func writeTar(w io.Writer, prefix string, entries []Entry, at time.Time) error {
	out := tar.NewWriter(w)
	for _, e := range entries {
		h := &tar.Header{Name: prefix + e.Path, Mode: e.Mode, ModTime: at, Typeflag: tar.TypeReg, Size: int64(len(e.Data)), Uname: "root", Gname: "root", Format: tar.FormatGNU}
		if e.isFolder() {
			h.Typeflag = tar.TypeDir
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := out.Write(e.Data); err != nil {
			return err
		}
	}
	return out.Close()
}

// compress is gzip, without a name and a time.
func compress(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.DefaultCompression) // the level is one that there is
	_, _ = z.Write(data)                                     // to memory
	_ = z.Close()
	return b.Bytes()
}

// Compressed is a file of documentation as Debian wants it.
func Compressed(data []byte) []byte { return compress(data) }

// TarGz is an archive for unix.
func TarGz(entries []Entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	err := writeTar(&b, "", entries, at)
	return compress(b.Bytes()), err
}
