package pack

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"strings"
	"time"
)

// Package is what is said of a package of either kind.
type Package struct {
	Name, Version     string
	Arch              string // as Go names it
	Summary, Text     string
	Maintainer, URL   string
	Section, Requires string            // in Debian's words
	Scripts           map[string]string // of Debian by their names, of RPM by pre, post, preun, postun
	At                time.Time
}

// Deb is a package of Debian, deb(5): an archive of ar with a version, what the package is, and its files.
func Deb(p *Package, entries []Entry) ([]byte, error) {
	entries = Folders(entries)
	size, sums, configs := 0, "", ""
	for _, e := range entries {
		if e.isFolder() {
			continue
		}
		size += len(e.Data)
		sums += fmt.Sprintf("%x  %s\n", md5.Sum(e.Data), e.Path)
		if e.IsConfig {
			configs += "/" + e.Path + "\n"
		}
	}
	text := strings.ReplaceAll(strings.TrimSpace(p.Text), "\n", "\n ")
	control := []Entry{
		{Path: "conffiles", Mode: 0o644, Data: []byte(configs)},
		{Path: "control", Mode: 0o644, Data: fmt.Appendf(nil, "Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %d\nDepends: %s\nSection: %s\nPriority: optional\nHomepage: %s\nDescription: %s\n %s\n",
			p.Name, p.Version, p.Arch, p.Maintainer, (size+1023)/1024, p.Requires, p.Section, p.URL, p.Summary, text)},
		{Path: "md5sums", Mode: 0o644, Data: []byte(sums)},
	}
	for _, name := range []string{"postinst", "postrm", "preinst", "prerm"} {
		if script := p.Scripts[name]; script != "" {
			control = append(control, Entry{Path: name, Mode: 0o755, Data: []byte(script)})
		}
	}
	b := bytes.NewBufferString("!<arch>\n")
	member := func(name string, data []byte) {
		fmt.Fprintf(b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, p.At.Unix(), 0, 0, "100644", len(data))
		b.Write(data)
		if len(data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	member("debian-binary", []byte("2.0\n"))
	for _, part := range []struct {
		name    string
		entries []Entry
	}{{"control.tar.gz", control}, {"data.tar.gz", entries}} {
		var archive bytes.Buffer
		if err := writeTar(&archive, "./", part.entries, p.At); err != nil {
			return nil, err
		}
		member(part.name, compress(archive.Bytes()))
	}
	return b.Bytes(), nil
}
