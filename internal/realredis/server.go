package realredis

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Options say how to start a server. The zero value is a master without a
// password.
type Options struct {
	// Command is the program and its first arguments; Command() if empty.
	Command []string
	// Args are further settings, such as "--maxmemory", "10mb".
	Args []string
	// Password is what clients must give, if any.
	Password string
}

// startTimeout is how long a server may take until it answers.
const startTimeout = 20 * time.Second

// errPortTaken means that somebody took the port between the moment it was
// found free and the moment the server wanted it.
var errPortTaken = errors.New("realredis: port taken")

// Server is one server process. Its methods may be called from any goroutine,
// one at a time taking effect.
type Server struct {
	opts    Options
	command []string
	dir     string // working directory, with the log
	port    int

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone
}

// launch starts one server on a free port.
func launch(opts Options) (*Server, error) {
	s := &Server{opts: opts, command: opts.Command}
	if len(s.command) == 0 {
		var err error
		if s.command, err = Command(); err != nil {
			return nil, err
		}
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "realredis-"); err != nil {
		return nil, err
	}
	err = errPortTaken
	for tries := 0; errors.Is(err, errPortTaken) && tries < 5; tries++ {
		if s.port, err = freePort(); err == nil {
			err = s.run()
		}
	}
	if err != nil {
		_ = os.RemoveAll(s.dir)
		return nil, err
	}
	return s, nil
}

// Addr is the address that clients dial.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

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

// Kill ends the process at once, and returns when it is gone. Its keys are
// lost; its port is free for Restart.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill()
}

// Restart kills the process, if it runs, and starts a new and empty one on the
// same port.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.kill(); err != nil {
		return err
	}
	return s.run()
}

// Close kills the process and removes its files.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.kill(), os.RemoveAll(s.dir))
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

// run starts the process on s.port and waits until it answers.
func (s *Server) run() error {
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own copy
	args := append([]string{}, s.command[1:]...)
	args = append(args, "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", s.dir)
	if s.opts.Password != "" {
		args = append(args, "--requirepass", s.opts.Password)
	}
	cmd := exec.Command(s.command[0], append(args, s.opts.Args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	s.cmd, s.exited = cmd, make(chan struct{})
	if err := supervise(cmd, s.exited); err != nil {
		return fmt.Errorf("realredis: %w", err)
	}
	if err := s.awaitReady(); err != nil {
		_ = s.kill()
		text, _ := os.ReadFile(log.Name())
		if bytes.Contains(text, []byte("Address already in use")) {
			err = errPortTaken
		}
		return fmt.Errorf("%w\n%s", err, bytes.TrimSpace(text))
	}
	return nil
}

// awaitReady returns when the server answers PING.
func (s *Server) awaitReady() error {
	deadline := time.After(startTimeout)
	for {
		err := ping(s.Addr())
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("realredis: %s ended: %v", s.command[0], s.cmd.ProcessState)
		case <-deadline:
			return fmt.Errorf("realredis: %s does not answer: %w", s.command[0], err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// ping asks a server whether it serves. Asking for a password is an answer,
// loading is not.
func ping(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	reply := make([]byte, 256)
	n, err := c.Read(reply)
	if err != nil {
		return err
	}
	if reply[0] != '+' && !bytes.HasPrefix(reply[:n], []byte("-NOAUTH")) {
		return fmt.Errorf("answered %q", reply[:n])
	}
	return nil
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := ln.Addr().(*net.TCPAddr).Port
	return port, ln.Close()
}
