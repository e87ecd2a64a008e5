// Package pty runs programs at a pseudo terminal of their own, as a user does: with a prompt, job control, and the
// keys that send signals. It works on Linux; elsewhere [Start] skips the test.
package pty

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
)

// Keys that a terminal turns into signals.
const (
	Interrupt = "\x03" // ^C
	Quit      = "\x1c" // ^\
	Suspend   = "\x1a" // ^Z
)

// Terminal is a pseudo terminal. A program is the leader of its session.
type Terminal struct {
	T       testing.TB
	program *exec.Cmd
	ended   chan struct{}
	user    *os.File // the user's side

	mu   sync.Mutex
	text string // what has been shown
	read int    // how much of it Await has passed
}

// Start starts a program at a new terminal. It is killed at the end of the test, with all that has the terminal.
func Start(t testing.TB, program *exec.Cmd) *Terminal {
	t.Helper()
	user, programs, err := open()
	if err != nil {
		t.Skip("no pseudo terminal: ", err)
	}
	defer programs.Close()
	p := &Terminal{T: t, program: program, ended: make(chan struct{}), user: user}
	program.Stdin, program.Stdout, program.Stderr = programs, programs, programs
	lead(program)
	require.NoError(t, program.Start())
	go p.show()
	go func() {
		_ = program.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.HangUp()
		_ = program.Process.Kill()
		testkit.Get(t, p.ended)
	})
	return p
}

// Shell starts a shell at a new terminal, and waits for its prompt.
func Shell(t testing.TB, environ []string, name string, args ...string) *Terminal {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	program := exec.Command(path, args...)
	program.Env = append(environ, "PS1="+prompt, "PS2=", "TERM=dumb", "HISTFILE=", "ENV=")
	p := Start(t, program)
	p.Prompt()
	return p
}

// prompt is how a shell asks for a command. It does not occur in a command.
const prompt = "<ready>"

// Prompt waits for the next prompt of a shell, and returns what was shown before it.
func (p *Terminal) Prompt() string { return p.Await(prompt) }

// Run types a command and waits for the next prompt. It returns what was shown in between, without the command.
func (p *Terminal) Run(command string) string {
	p.Type(command + "\n")
	_, shown, _ := strings.Cut(p.Prompt(), "\n")
	return shown
}

// Type types keys.
func (p *Terminal) Type(keys string) {
	_, err := p.user.WriteString(keys)
	require.NoError(p.T, err)
}

// Await waits until a text is shown behind the last one that was awaited, and returns what is between the two.
func (p *Terminal) Await(text string) (before string) {
	p.T.Helper()
	defer func() {
		if p.T.Failed() {
			p.T.Logf("waiting for %q at:\n%s", text, p.Text())
		}
	}()
	testkit.Await(p.T, text, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		at := strings.Index(p.text[p.read:], text)
		if at < 0 {
			return false
		}
		before = p.text[p.read:][:at]
		p.read += at + len(text)
		return true
	})
	return before
}

// Suspend types ^Z, and waits for the prompt and until all programs of the session have stopped but those named: one that
// has not stopped yet may take the next keys.
func (p *Terminal) Suspend(but string) {
	p.Type(Suspend)
	p.Prompt()
	p.await("they stop", func(name, state string) bool { return name == but || state == "T" || state == "Z" })
}

// Resumed waits until no program of the session is stopped: SIGCONT takes back a ^Z typed before it.
func (p *Terminal) Resumed() {
	p.await("they go on", func(_, state string) bool { return state != "T" })
}

// HasStopped reports whether some program of the session is stopped.
func (p *Terminal) HasStopped() bool {
	return !p.all(func(_, state string) bool { return state != "T" })
}

// await waits until all programs of the session, but for the shell, are as wanted.
func (p *Terminal) await(what string, is func(name, state string) bool) {
	testkit.Await(p.T, what, func() bool { return p.all(is) })
}

// all reports whether all programs of the session, but for the shell, are as wanted.
func (p *Terminal) all(is func(name, state string) bool) bool {
	leader := strconv.Itoa(p.program.Process.Pid)
	all, _ := os.ReadDir("/proc")
	for _, dir := range all {
		state, session, name := state(dir.Name())
		if session == leader && dir.Name() != leader && !is(name, state) {
			return false
		}
	}
	return true
}

// Text is all that has been shown.
func (p *Terminal) Text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text
}

// HangUp ends the terminal, as closing its window does.
func (p *Terminal) HangUp() { _ = p.user.Close() }

// show collects what is shown. Lines end by \r\n at a terminal.
func (p *Terminal) show() {
	part := make([]byte, 4096)
	for {
		n, err := p.user.Read(part)
		p.mu.Lock()
		p.text += strings.ReplaceAll(string(part[:n]), "\r", "")
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}
