package pack

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/google/rpmpack"
)

// RPM is a package of RPM. Folders that other packages own are not in it.
func RPM(p *Package, entries []Entry) ([]byte, error) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[p.Arch]
	version, release, isEarly := strings.Cut(p.Version, "~")
	if isEarly {
		version, release = p.Version, "0"
	}
	out, err := rpmpack.NewRPM(rpmpack.RPMMetaData{
		Name: p.Name, Version: version, Release: cmp.Or(release, "1"), Arch: arch, OS: "linux", Epoch: rpmpack.NoEpoch,
		Summary: p.Summary, Description: p.Text, Packager: p.Maintainer, URL: p.URL, Licence: "MIT", Group: "System Environment/Daemons",
		Compressor: "gzip", BuildTime: p.At, BuildHost: "localhost",
	})
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		f := rpmpack.RPMFile{Name: "/" + strings.TrimSuffix(e.Path, "/"), Mode: uint(e.Mode), Body: e.Data, Owner: "root", Group: cmp.Or(e.Group, "root"), MTime: uint32(p.At.Unix())}
		switch {
		case e.isFolder():
			f.Mode |= 0o40000
		case e.IsConfig:
			f.Type = rpmpack.ConfigFile | rpmpack.NoReplaceFile
		}
		out.AddFile(f)
	}
	out.AddPrein(p.Scripts["pre"])
	out.AddPostin(p.Scripts["post"])
	out.AddPreun(p.Scripts["preun"])
	out.AddPostun(p.Scripts["postun"])
	var b bytes.Buffer
	err = out.Write(&b)
	return b.Bytes(), err
}
