package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/place"
	"github.com/redlock-go/redlock/bench/result"
)

// greeting is how long a node may take to be connected to and to answer.
const greeting = time.Second

// describeMachine names what a figure depends on besides the code.
func describeMachine() string {
	return fmt.Sprintf("%s, %d cores, %s, %s, GOMAXPROCS %d",
		cpuModel(), max(place.Processors(), runtime.NumCPU()), kernel(), runtime.Version(), runtime.GOMAXPROCS(0))
}

// cpuModel is the name of the processor, or its architecture if the system has no name.
func cpuModel() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// kernel is the system and, if known, its release.
func kernel() string {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(runtime.GOOS + " " + string(release))
}

// commit is the revision that is measured: as built in; else that of the source tree (go run
// builds none in, nor does go build in a linked work tree); else the version of the module.
func commit(ctx context.Context) string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		info = new(debug.BuildInfo)
	}
	var revision, mark string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			mark = "+dirty"
		}
	}
	if revision != "" {
		return revision + mark
	}
	self, _ := os.Executable()
	if _, file, _, ok := runtime.Caller(0); ok {
		git := func(args ...string) string {
			out, _ := exec.CommandContext(ctx, "git", append([]string{"-C", filepath.Dir(file)}, args...)...).Output()
			return strings.TrimSpace(string(out))
		}
		// A commit that is younger than the binary is not its source.
		when, err := strconv.ParseInt(git("log", "-1", "--format=%ct"), 10, 64)
		built, missing := os.Stat(self)
		if err == nil && missing == nil && built.ModTime().Unix() >= when {
			return git("describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+dirty")
		}
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "unknown"
}

// serverInfo asks a master what it is, and for the name of its process.
func serverInfo(ctx context.Context, addr string) (what, process string, err error) {
	fields, err := info(ctx, addr, "server")
	for _, kind := range []string{"Valkey", "Redis"} {
		if v := fields[strings.ToLower(kind)+"_version"]; v != "" {
			return kind + " " + v, fields["run_id"], nil
		}
	}
	return "", "", cmp.Or(err, errors.New("reports no version"))
}

// look asks the masters for their versions. One that does not answer is noted, and is no
// error: the behaviour of clients is then worth measuring. One server at two addresses is
// an error: it would vote twice.
func (s *site) look(ctx context.Context) error {
	s.away = map[string]bool{}
	processes := map[string]string{}
	for _, addr := range s.addrs {
		node := result.Server{Addr: addr, What: "embedded master"}
		if s.masters == nil {
			what, process, err := serverInfo(ctx, addr)
			node.What = what
			if err != nil {
				node.Down = err.Error()
				s.away[addr] = true
			}
			if other := processes[process]; process != "" && other != "" {
				return fmt.Errorf("-nodes: %s and %s are the same server", other, addr)
			}
			processes[process] = addr
		}
		s.servers = append(s.servers, node)
	}
	return nil
}
