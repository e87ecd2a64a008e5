package build

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRead: a release, a checkout, a service that depends on the library, an installation by version.
func TestRead(t *testing.T) {
	const hash, at = "6d8ea72cab12fee0fee0fee0fee0fee0fee0fee0", "2026-11-28T23:59:59-01:00"
	checkout := []debug.BuildSetting{{Key: "vcs.revision", Value: hash}, {Key: "vcs.time", Value: at}, {Key: "vcs.modified", Value: "true"}}
	of := func(path, version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: path, Version: version}, Settings: settings}
	}
	service := func(version string) *debug.BuildInfo {
		s := of("example.com/service", "v9.9.9", checkout...)
		s.Deps = []*debug.Module{{Path: "example.com/other", Version: "v1.0.0"}, {Path: module, Version: version}}
		return s
	}
	for _, c := range []struct {
		name         string
		info         *debug.BuildInfo
		commit, date string
		word, text   string
	}{
		{"release", of(module, "v0.0.0-20261129005959-6d8ea72cab12+dirty", checkout...), hash, at, "0.1.0+6d8ea72cab12.20261129", "0.1.0 6d8ea72cab12 of 2026-11-29"},
		{"tag", of(module, "v0.1.0", checkout[:2]...), "", "", "0.1.0+6d8ea72cab12.20261129", "0.1.0 6d8ea72cab12 of 2026-11-29"},
		{"checkout", of(module, "v0.0.0-20261129005959-6d8ea72cab12+dirty", checkout...), "", "", "0.1.0-dev+6d8ea72cab12.20261129", "0.1.0-dev 6d8ea72cab12 with changes of 2026-11-29"},
		{"unstamped", of(module, "(devel)"), "", "", "0.1.0-dev", "0.1.0-dev"},
		{"installed", of(module, "v0.2.0"), "", "", "0.2.0", "0.2.0"},
		{"dependency", service("v0.1.0"), "", "", "0.1.0", "0.1.0"},
		{"commit as a dependency", service("v0.0.0-20261129005959-6d8ea72cab12"), "", "", "0.0.0-20261129005959-6d8ea72cab12", "0.0.0-20261129005959-6d8ea72cab12"},
		{"replaced", service("(devel)"), "", "", "0.1.0-dev", "0.1.0-dev"},
		{"nothing known", &debug.BuildInfo{}, "", "", "0.1.0-dev", "0.1.0-dev"},
	} {
		got := read(c.info, c.commit, c.date)
		require.Equal(t, c.word, got.Word(), c.name)
		require.Equal(t, c.text, got.String(), c.name)
	}
	require.NotEmpty(t, Read().Version)
}
