// Package lab is a run: hosts with masters and clients, the wire between them, the faults, and what is seen from outside.
package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redlock-go/redlock/bench/network/history"
	"github.com/redlock-go/redlock/bench/network/host"
	"github.com/redlock-go/redlock/bench/network/nemesis"
	"github.com/redlock-go/redlock/bench/network/wire"
	"github.com/redlock-go/redlock/bench/network/workload"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// Numbers of the hosts.
const (
	firstMaster = 11
	masters     = 5
	firstClient = 21
	serveHost   = 31
)

// clientOf is the number of a client by that of its host.
func clientOf(host int) int { return host - firstClient + 1 }

// lab is a run.
type lab struct {
	history.Setup
	dir      string
	tools    Tools
	server   []string // the command of the masters
	wire     *wire.Wire
	hosts    map[int]*host.Host
	masters  map[int]*master
	programs map[int]*exec.Cmd // clients, and redlock serve
	inputs   []io.Writer
	file     *history.File
	closers  []io.Closer
}

// Tools are the programs of a run.
type Tools struct {
	Redlock string // the command, where it serves
	Client  string // this program, or a copy of it with another library
}

// Missing says what this machine lacks for a run, or nil.
func Missing() (err error) {
	_, err = realredis.Usual.Command()
	return errors.Join(host.Missing(), err)
}

// Run runs a setup, and leaves its files in a folder.
func Run(ctx context.Context, setup history.Setup, dir string, tools Tools) (err error) {
	l := &lab{Setup: setup, dir: dir, tools: tools, wire: wire.New(setup.Seed), hosts: map[int]*host.Host{}, masters: map[int]*master{}, programs: map[int]*exec.Cmd{}}
	l.Setup = fill(l.Setup)
	defer l.close()
	if l.server, err = realredis.Usual.Command(); err != nil {
		return err
	}
	if l.file, err = history.Create(dir, "lab"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.file.Close()) }()
	faults, err := nemesis.Faults(l.plan())
	if err != nil {
		return err
	}
	if err := l.build(ctx); err != nil {
		return err
	}
	return l.live(ctx, faults)
}

// fill sets what follows from the rest.
func fill(s history.Setup) history.Setup {
	if s.MaxTTL == 0 && (s.Fenced || s.Serve || nemesis.Kills(s.Mix) && !s.Persistent) {
		s.MaxTTL = 3200 * time.Millisecond // redlock serve takes a little of it for itself
	}
	if s.Scale == 0 {
		s.Scale = 1
	}
	if s.Clients == 0 {
		s.Clients = 4
	}
	return s
}

// onceTTL is that of keys that are used once: long, where no restart makes a quarantine of it.
func (l *lab) onceTTL() time.Duration {
	if l.MaxTTL > 0 {
		return l.MaxTTL
	} else if nemesis.Kills(l.Mix) {
		return 3 * time.Second
	}
	return 20 * time.Second
}

// quarantine is how long a restarted master has no vote.
func (l *lab) quarantine() time.Duration {
	if nemesis.Kills(l.Mix) && !l.Persistent {
		return l.MaxTTL + l.MaxTTL/100 + time.Second/2
	}
	return 0
}

func (l *lab) plan() nemesis.Plan {
	p := nemesis.Plan{
		Seed: l.Seed, Mix: l.Mix, Length: l.Faults, Scale: l.Scale, AtMost: 3,
		Masters: numbers(firstMaster, masters), Clients: numbers(firstClient, l.Clients), Gap: time.Second + l.quarantine(),
	}
	if l.Serve {
		p.Clients = append(p.Clients, serveHost)
	}
	if l.Fenced && !l.Persistent {
		p.AtMost = 2 // with three the tokens are lost, and it takes an operator
	}
	return p
}

func numbers(first, n int) (all []int) {
	for i := range n {
		all = append(all, first+i)
	}
	return all
}

// build starts masters and clients, and waits until all are ready.
func (l *lab) build(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	all := numbers(firstMaster, masters)
	if l.Change {
		all = append(all, firstMaster+masters)
	}
	clients := numbers(firstClient, l.Clients)
	hosts := append(slices.Clone(all), clients...)
	if l.Serve {
		hosts = append(hosts, serveHost)
	}
	for _, n := range hosts {
		h, err := host.New(n)
		if err != nil {
			return err
		}
		l.hosts[n] = h
		l.wire.Attach(n, h.Device)
	}
	var nodes []string
	for _, n := range all {
		m := newMaster(l.hosts[n], filepath.Join(l.dir, fmt.Sprint("master", n)), l.server, l.Persistent)
		if err := m.start(); err != nil {
			return err
		}
		l.masters[n] = m
		node := fmt.Sprintf("redis://%s:%d", host.Address(n), port)
		if l.Persistent {
			node += "?persistent=yes"
		}
		nodes = append(nodes, node)
	}
	for _, m := range l.masters {
		var err error
		if l.Setup.Server, err = m.up(ctx); err != nil {
			return err
		}
	}
	register, err := workload.ServeRegister(filepath.Join(l.dir, "register"))
	if err != nil {
		return err
	}
	l.closers = append(l.closers, register)
	plan := workload.Plan{Setup: l.Setup, Nodes: nodes[:masters], Dir: l.dir, Register: filepath.Join(l.dir, "register"), OnceTTL: l.onceTTL()}
	if l.Change {
		plan.Next = append(slices.Clone(nodes[:masters-1]), nodes[masters])
	}
	ready := make(chan error)
	for _, n := range clients {
		plan.Client = clientOf(n)
		if l.Serve {
			plan.Front = host.Address(serveHost) + ":6380"
		}
		if err := l.startClient(n, plan, ready); err != nil {
			return err
		}
	}
	for range clients {
		select {
		case err := <-ready:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return errors.New("the clients are not ready")
		}
	}
	if l.Serve { // behind the clients, which give new nodes their vote
		return l.startServe(nodes)
	}
	return nil
}

// startClient starts a client process, and reports when it is ready.
func (l *lab) startClient(n int, plan workload.Plan, ready chan<- error) error {
	argument, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	cmd := exec.Command(l.tools.Client, workload.Verb, string(argument))
	in, out, err := l.pipes(cmd, fmt.Sprint("client", plan.Client))
	if err != nil {
		return err
	}
	if err := l.hosts[n].Start(cmd); err != nil {
		return err
	}
	l.programs[n] = cmd
	l.inputs = append(l.inputs, in)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		if line != "ready\n" {
			ready <- fmt.Errorf("client %d does not begin: see its .stderr in %s", plan.Client, l.dir)
			return
		}
		ready <- nil
	}()
	return nil
}

func (l *lab) pipes(cmd *exec.Cmd, name string) (in io.Writer, out io.Reader, err error) {
	errors, err := os.Create(filepath.Join(l.dir, name+".stderr"))
	if err != nil {
		return nil, nil, err
	}
	l.closers = append(l.closers, errors)
	cmd.Stderr = errors
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	out, err = cmd.StdoutPipe()
	return in, out, err
}

// startServe starts redlock serve.
func (l *lab) startServe(nodes []string) error {
	arguments := []string{"serve", "-listen", host.Address(serveHost) + ":6380", "-nodes", strings.Join(nodes[:masters], ",")}
	if l.MaxTTL > 0 {
		arguments = append(arguments, "-max-ttl", l.MaxTTL.String())
	}
	if l.Fenced {
		arguments = append(arguments, "-fenced")
	}
	cmd := exec.Command(l.tools.Redlock, arguments...)
	log, err := os.Create(filepath.Join(l.dir, "serve.log"))
	if err != nil {
		return err
	}
	l.closers = append(l.closers, log)
	cmd.Stdout, cmd.Stderr = log, log
	l.programs[serveHost] = cmd
	return l.hosts[serveHost].Start(cmd)
}

// close ends all programs and removes all hosts.
func (l *lab) close() {
	for _, c := range l.programs {
		if c.Process != nil {
			_ = c.Process.Signal(syscall.SIGCONT)
			_ = c.Process.Kill()
		}
	}
	for _, m := range l.masters {
		m.kill()
		_ = m.client.Close()
	}
	for _, h := range l.hosts {
		h.Close()
	}
	for _, c := range l.closers {
		_ = c.Close()
	}
}
