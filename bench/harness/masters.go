package harness

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/fakeredis"
)

// mastersEnv tells a copy of this binary to be the masters, and how many.
const mastersEnv = "REDLOCK_BENCH_MASTERS"

// Masters are embedded masters in a child process, so that neither their CPU
// nor their allocations are taken for the client's.
type Masters struct {
	// Addrs are their addresses.
	Addrs []string

	cmd   *exec.Cmd
	stdin io.Closer
}

// StartMasters runs this binary once more, as n masters. The program must call
// [ServeIfMasters] first thing.
func StartMasters(n int) (*Masters, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("embedded masters: %w", err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), mastersEnv+"="+strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	// The child lives as long as this pipe is open at our end. The kernel
	// closes it whichever way this process ends.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("embedded masters: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("embedded masters: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("embedded masters: %w", err)
	}
	m := &Masters{cmd: cmd, stdin: stdin}
	lines := bufio.NewScanner(stdout)
	for len(m.Addrs) < n && lines.Scan() {
		m.Addrs = append(m.Addrs, lines.Text())
	}
	if len(m.Addrs) < n {
		return nil, errors.Join(fmt.Errorf("embedded masters: %d of %d started", len(m.Addrs), n), m.Close())
	}
	return m, nil
}

// Close ends the masters and waits until their process is gone.
func (m *Masters) Close() error {
	_ = m.stdin.Close()
	stuck := time.AfterFunc(grace, func() { _ = m.cmd.Process.Kill() })
	defer stuck.Stop()
	if err := m.cmd.Wait(); err != nil {
		return fmt.Errorf("embedded masters: %w", err)
	}
	return nil
}

// ServeIfMasters does nothing in a normal process. In one that [StartMasters]
// has started it serves until stdin ends, and exits. Call it before anything
// else, also from the TestMain of a test that starts masters.
func ServeIfMasters() {
	n, err := strconv.Atoi(os.Getenv(mastersEnv))
	if err != nil {
		return
	}
	if err := serve(n, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "embedded masters:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve starts n masters, tells their addresses one a line, and waits for the
// end of in.
func serve(n int, in io.Reader, out io.Writer) error {
	for range n {
		s, err := fakeredis.Start(fakeredis.Options{})
		if err != nil {
			return err
		}
		defer s.Close()
		if _, err := fmt.Fprintln(out, s.Addr()); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, in)
	return err
}
