package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// platform is a system and an architecture as Go names them.
type platform struct{ system, arch string }

func (p platform) String() string { return p.system + "_" + p.arch }

var allPlatforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"freebsd", "amd64"}, {"windows", "amd64"},
}

const (
	commandPath = "github.com/redlock-go/redlock/internal/cmd/redlock"
	buildPath   = "github.com/redlock-go/redlock/internal/base/build"
)

// compile builds the program for a platform, without C and without the paths of this machine.
func (s *source) compile(ctx context.Context, p platform, dir string) ([]byte, error) {
	linker := "-s -w"
	if !s.isDry {
		linker += fmt.Sprintf(" -X %s.commit=%s -X %s.date=%s", buildPath, s.commit, buildPath, s.at.Format(time.RFC3339))
	}
	file := filepath.Join(dir, p.String())
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", linker, "-o", file, commandPath)
	cmd.Dir = s.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+p.system, "GOARCH="+p.arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %w: %s", p, err, out)
	}
	return os.ReadFile(file)
}

// own is the program of this machine, which writes its pages.
func (s *source) own(ctx context.Context, dir string) (say func(args ...string) ([]byte, error), err error) {
	here := platform{runtime.GOOS, runtime.GOARCH}
	if _, err := os.Stat(filepath.Join(dir, here.String())); err != nil {
		if _, err := s.compile(ctx, here, dir); err != nil {
			return nil, err
		}
	}
	return func(args ...string) ([]byte, error) {
		return exec.CommandContext(ctx, filepath.Join(dir, here.String()), args...).Output()
	}, nil
}
