// Package lab is a run: hosts with masters and clients, the wire between them, the faults, and what is seen from outside.
package lab

import (
	"bufio"
	"cmp"
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
	masters     = 5 // of a group
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
	inputs   []io.Writer       // of the clients
	file     *history.File
	noted    map[history.Seen]bool // the masters of each key, which tell its group
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
	l := &lab{Setup: setup, dir: dir, tools: tools, wire: wire.New(setup.Seed), hosts: map[int]*host.Host{}, masters: map[int]*master{}, programs: map[int]*exec.Cmd{}, noted: map[history.Seen]bool{}}
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
	s.Clients, s.Scale = 4, cmp.Or(s.Scale, 1)
	if s.Fenced || s.Serve || nemesis.Kills(s.Mix) {
		s.MaxTTL = 3200 * time.Millisecond // redlock serve takes a little of it for itself
	}
	return s
}

// quarantine is how long a restarted master has no vote.
func (l *lab) quarantine() time.Duration {
	if nemesis.Kills(l.Mix) {
		return l.MaxTTL + l.MaxTTL/100 + time.Second/2
	}
	return 0
}

func (l *lab) plan() nemesis.Plan {
	p := nemesis.Plan{
		Seed: l.Seed, Mix: l.Mix, Length: l.Faults, Scale: l.Scale, AtMost: 3,
		Groups: [][]int{numbers(firstMaster, masters)}, Clients: numbers(firstClient, l.Clients), Gap: time.Second + l.quarantine(),
	}
	if l.Groups {
		p.Groups = append(p.Groups, numbers(firstMaster+masters, masters))
	}
	if l.Serve {
		p.Clients = append(p.Clients, serveHost)
	}
	if l.Fenced {
		p.AtMost = 2 // with three the tokens are lost, and it takes an operator
		if l.Change {
			p.AtMost = 1 // the new master does not have them yet
		}
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
	all, clients := numbers(firstMaster, masters), numbers(firstClient, l.Clients)
	switch {
	case l.Groups:
		all = numbers(firstMaster, 2*masters)
	case l.Change:
		all = numbers(firstMaster, masters+1)
	}
	hosts := slices.Concat(all, clients)
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
		m := newMaster(l.hosts[n], filepath.Join(l.dir, fmt.Sprint("master", n)), l.server)
		if err := m.start(); err != nil {
			return err
		}
		l.masters[n] = m
		nodes = append(nodes, fmt.Sprintf("%s:%d", host.Address(n), port))
	}
	for _, m := range l.masters {
		var err error
		if l.Setup.Server, err = m.up(ctx); err != nil {
			return err
		}
	}
	plan := workload.Plan{Setup: l.Setup, Nodes: [][]string{nodes[:masters]}, Dir: l.dir, OnceTTL: cmp.Or(l.MaxTTL, 20*time.Second)}
	switch both := slices.Collect(slices.Chunk(nodes, masters)); {
	case l.Groups && l.Change:
		plan.Next = both
	case l.Groups:
		plan.Nodes = both
	case l.Change:
		plan.Next = [][]string{append(slices.Clone(nodes[:masters-1]), nodes[masters])}
	}
	var lists []string
	for _, group := range plan.Nodes {
		lists = append(lists, strings.Join(group, ","))
	}
	serve := []string{l.tools.Redlock, "serve", "-listen", host.Address(serveHost) + ":6380", "-nodes", strings.Join(lists, ";"), "-max-ttl", l.MaxTTL.String()}
	if l.Fenced {
		serve = append(serve, "-fenced")
	}
	if l.Serve {
		plan.Front = serve[3]
	}
	ready := make(chan error, 2*len(clients))
	for _, n := range clients {
		plan.Client = clientOf(n)
		argument, err := json.Marshal(plan)
		if err != nil {
			return err
		}
		name := fmt.Sprint("client", plan.Client)
		in, out, err := l.start(n, name, l.tools.Client, workload.Verb, string(argument))
		if err != nil {
			return err
		}
		l.inputs = append(l.inputs, in)
		go func() {
			if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
				ready <- fmt.Errorf("%s does not begin: see its .stderr in %s", name, l.dir)
			}
			ready <- nil
		}()
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
		_, _, err := l.start(serveHost, "serve", serve...)
		return err
	}
	return nil
}

// start starts a program on a host. Its errors go to a file.
func (l *lab) start(n int, name string, command ...string) (in io.Writer, out io.Reader, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	log, err := os.Create(filepath.Join(l.dir, name+".stderr"))
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		return nil, nil, err
	}
	l.programs[n] = cmd
	return in, out, l.hosts[n].Start(cmd)
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
}
