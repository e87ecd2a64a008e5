package harness

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// describeMachine names what a figure depends on besides the code.
func describeMachine() string {
	return fmt.Sprintf("%s, %d cores, %s, %s, GOMAXPROCS %d",
		cpuModel(), runtime.NumCPU(), kernel(), runtime.Version(), runtime.GOMAXPROCS(0))
}

// cpuModel is the processor's name where the system tells it, else its
// architecture.
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

// kernel is the system and, where it is told, its release.
func kernel() string {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(runtime.GOOS + " " + string(release))
}

// commit is the revision that is measured: as built in, else as the working
// directory has it (go run builds nothing in), marked if it was changed since.
func commit(ctx context.Context) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		var revision, mark string
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value[:min(len(s.Value), 12)]
			case s.Key == "vcs.modified" && s.Value == "true":
				mark = "+changes"
			}
		}
		if revision != "" {
			return revision + mark
		}
	}
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--abbrev=12", "--dirty=+changes").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// serverVersion asks a master what it is. It speaks the protocol by hand:
// a harness for clients should depend on none of them.
func serverVersion(ctx context.Context, addr string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	// QUIT makes the server end the stream, so that no length has to be
	// understood.
	if _, err := c.Write([]byte("*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n*1\r\n$4\r\nQUIT\r\n")); err != nil {
		return "", err
	}
	fields := map[string]string{}
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "-") {
			return "", fmt.Errorf("%s: %s", addr, line[1:])
		}
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	if v := fields["valkey_version"]; v != "" {
		return "Valkey " + v, nil
	}
	if v := fields["redis_version"]; v != "" {
		return "Redis " + v, nil
	}
	return "", fmt.Errorf("%s: does not tell its version", addr)
}

// describeServers names the masters. It fails if one cannot be reached: every
// cell would.
func describeServers(ctx context.Context, addrs []string, embedded bool) (string, error) {
	if embedded {
		return fmt.Sprintf("%d embedded masters in a process of their own", len(addrs)), nil
	}
	counts := map[string]int{}
	var order []string
	for _, addr := range addrs {
		v, err := serverVersion(ctx, addr)
		if err != nil {
			return "", err
		}
		if counts[v]++; counts[v] == 1 {
			order = append(order, v)
		}
	}
	for i, v := range order {
		order[i] = fmt.Sprintf("%d × %s", counts[v], v)
	}
	return fmt.Sprintf("%s (%s)", strings.Join(order, ", "), strings.Join(addrs, " ")), nil
}
