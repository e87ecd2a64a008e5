package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/place"
	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// where is a driver that fails with the processors of its process and of the servers that its parent has started.
type where struct{}

func (where) Name() string { return "where" }

func (where) Open(context.Context, Config) (Session, error) {
	all := []string{processors("self")}
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getppid()))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, pid := range strings.Fields(string(children)) {
			if pid != strconv.Itoa(os.Getpid()) {
				all = append(all, processors(pid))
			}
		}
	}
	return nil, errors.Join(err, errors.New(strings.Join(all, " ")))
}

// processors are those of a process, as the kernel writes them.
func processors(pid string) string {
	status, _ := os.ReadFile("/proc/" + pid + "/status")
	for line := range strings.Lines(string(status)) {
		if list, is := strings.CutPrefix(line, "Cpus_allowed_list:"); is {
			return strings.TrimSpace(list)
		}
	}
	return "none"
}

// TestServersAndClientsAreApart: a program has processors that no server of its has, unless it is told otherwise.
func TestServersAndClientsAreApart(t *testing.T) {
	if place.Processors() < 2 {
		t.Skip("one processor")
	}
	servers := []string{"embedded", "redis"}
	if _, err := realredis.Usual.Command(); err != nil {
		servers = servers[:1]
	}
	for _, server := range servers {
		for _, together := range []bool{false, true} {
			args := []string{"-json", "-driver", "where", "-scenario", "uncontended", "-c", "1", "-n", "2", "-server", server}
			if together {
				args = append(args, "-together")
			}
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env = append(os.Environ(), whole+"=1")
			var out bytes.Buffer
			cmd.Stdout = &out
			require.Error(t, cmd.Run(), "the driver fails")
			lines, err := result.Read(&out, "")
			require.NoError(t, err)
			require.Equal(t, !together, strings.HasPrefix(lines[0].Head.Place, "apart"), lines[0].Head.Place)
			found := strings.Fields(strings.TrimPrefix(lines[1].Result.Error, "where: open: "))
			require.GreaterOrEqual(t, len(found), 2)
			for _, of := range found[1:] {
				require.Equal(t, together, of == found[0], "%v", found)
			}
		}
	}
}
