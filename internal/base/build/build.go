// Package build identifies the build: the version, and the commit and its day if they are known.
package build

import (
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// Version is the release made, or to be made, from this source.
const Version = "0.1.0"

const module = "github.com/redlock-go/redlock"

// Set by the linker in a release: -ldflags "-X github.com/redlock-go/redlock/internal/base/build.commit=…". The date is
// in the form of RFC 3339.
var commit, date string

// Info describes the build, as far as it is known.
type Info struct {
	Version string // without v; between two releases it ends in -dev
	Commit  string // 12 digits, or ""
	Changed bool   // files were changed since the commit
	Date    string // of the commit, such as 2026-11-28, or ""
}

// Read returns the build of this program.
var Read = sync.OnceValue(func() Info {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return read(info, commit, date)
})

// read takes the values given to the linker, or else those known to the go command. For a dependency, and for a program
// installed by its version, that is the version; for a checkout it is the commit.
func read(info *debug.BuildInfo, commit, date string) Info {
	b := Info{Version: Version, Commit: commit}
	version := info.Main.Version
	for _, dep := range info.Deps {
		if dep.Path == module {
			version = dep.Version
		}
	}
	if commit == "" && info.Main.Path == module {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				date = s.Value
			case "vcs.modified":
				b.Changed = s.Value == "true"
			}
		}
	}
	switch isRelease := commit != "" || version == "v"+Version; {
	case isRelease:
	case b.Commit == "" && strings.HasPrefix(version, "v"):
		b.Version = version[1:]
	default:
		b.Version += "-dev"
	}
	b.Commit = b.Commit[:min(12, len(b.Commit))]
	if t, err := time.Parse(time.RFC3339, date); err == nil {
		b.Date = t.UTC().Format(time.DateOnly)
	}
	return b
}

// Word is the version with the rest as its build metadata (semver.org), such as 0.1.0+6d8ea72cab12.20261128. It is one
// word, as servers require it in CLIENT SETINFO.
func (b Info) Word() string {
	if b.Commit == "" {
		return b.Version
	}
	return strings.TrimSuffix(b.Version+"+"+b.Commit+"."+strings.ReplaceAll(b.Date, "-", ""), ".")
}

// String shows all of it, for people.
func (b Info) String() string {
	text := b.Version
	if b.Commit != "" {
		text += " " + b.Commit
	}
	if b.Changed {
		text += " with changes"
	}
	if b.Date != "" {
		text += " of " + b.Date
	}
	return text
}
