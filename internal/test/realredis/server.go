package realredis

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"

	"github.com/redlock-go/redlock/internal/test/port"
)

// errPortTaken means that another process took the port after it was found free and before the
// server took it.
var errPortTaken = errors.New("realredis: port taken")

// Server is one server process. Its methods may be called from any goroutine, one at a time taking
// effect.
type Server struct {
	opts    Options
	command []string
	dir     string // has the log, and the files of the settings
	port    port.Port
	tlsPort port.Port // only with Options.TLS

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed at the end of the process
}

// launch starts one server on a free port.
func launch(opts Options) (*Server, error) {
	s := &Server{opts: opts, command: opts.Command}
	if len(s.command) == 0 {
		var err error
		if s.command, err = opts.Kind.Command(); err != nil {
			return nil, err
		}
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "realredis-"); err != nil {
		return nil, err
	}
	err = errPortTaken
	for tries := 0; errors.Is(err, errPortTaken) && tries < 5; tries++ {
		if err = s.choosePorts(); err == nil {
			err = s.run(serves)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.closePorts(), os.RemoveAll(s.dir))
	}
	return s, nil
}

// Addr is the address for clients.
func (s *Server) Addr() string { return s.port.Addr() }

// TLSAddr is the address for TLS clients, with Options.TLS.
func (s *Server) TLSAddr() string { return s.tlsPort.Addr() }

// Socket is the path of the Unix socket, with Options.Unix.
func (s *Server) Socket() string { return s.file("socket") }

// DataDir is the directory of the server's data.
func (s *Server) DataDir() string { return s.file("data") }

// PID is the id of the process.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Pid
}

// Stop freezes the process with SIGSTOP, and returns when it stands still. Its
// kernel goes on accepting connections and data.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return freeze(s.cmd.Process)
}

// Cont lets a frozen process go on.
func (s *Server) Cont() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return unfreeze(s.cmd.Process)
}

// Kill ends the process at once, and returns when it is gone. Its keys are lost unless it is
// persistent; its port is free for Restart.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill()
}

// Restart kills the process, if it runs, and starts a new one on the same port.
// It is empty unless it is persistent.
func (s *Server) Restart() error { return s.restart(serves) }

// Boot is Restart with further settings, for this life only. It returns with the server's first
// answer of any kind, such as that it is loading its data.
func (s *Server) Boot(args ...string) error { return s.restart(answers, args...) }

func (s *Server) restart(goodEnough func(string) bool, args ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.kill(); err != nil {
		return err
	}
	return s.run(goodEnough, args...)
}

// Close kills the process and removes its files.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.kill(), s.closePorts(), os.RemoveAll(s.dir))
}

func (s *Server) kill() error {
	if s.cmd.Process == nil { // it could not even be started
		return nil
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.exited
	return nil
}

func (s *Server) choosePorts() (err error) {
	if err := s.closePorts(); err != nil {
		return err
	}
	s.port, err = port.Free()
	if err == nil && s.opts.TLS != nil {
		s.tlsPort, err = port.Free()
	}
	return err
}

func (s *Server) closePorts() error {
	return errors.Join(s.port.Close(), s.tlsPort.Close())
}

// run starts the process on its port and waits for a good enough answer.
func (s *Server) run(goodEnough func(string) bool, more ...string) error {
	if err := s.prepare(); err != nil {
		return err
	}
	log, err := os.Create(s.file("log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own copy
	args := slices.Concat(s.command[1:], s.args(), more)
	cmd := exec.Command(s.command[0], args...)
	cmd.Stdout, cmd.Stderr = log, log
	s.cmd, s.exited = cmd, make(chan struct{})
	start := s.opts.Start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	if err := supervise(cmd, start, s.exited); err != nil {
		return fmt.Errorf("realredis: %w", err)
	}
	if err := s.await(goodEnough); err != nil {
		_ = s.kill()
		text, _ := os.ReadFile(log.Name())
		if bytes.Contains(text, []byte("Address already in use")) {
			err = errPortTaken
		}
		return fmt.Errorf("%w\n%s", err, bytes.TrimSpace(text))
	}
	return nil
}
