package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/server/frontend"
	"github.com/redlock-go/redlock/internal/server/session"
	"github.com/redlock-go/redlock/internal/test/embedded"
)

const aboutServe = `
Serve speaks Redis: a lock client that was written for one Redis connects to it, unmodified, and
holds each lock on a majority of the nodes. SET NX, GET, DEL, EXPIRE, the lock scripts of most
libraries, SUBSCRIBE to what they publish, and RL.LOCK, RL.EXTEND, RL.UNLOCK, RL.FENCE, RL.INSPECT
and RL.WAIT work; what is no lock is refused. Several servers may stand behind one address; they share nothing.
A client of Redlock names the address once, and not three times.

  redlock serve -nodes 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379
  redlock serve -embedded                 nothing to install: for trying only

SIGTERM, SIGINT and SIGQUIT end it: commands under way are answered, and locks with KEEP are released; a second one
ends it at once. SIGHUP has it read its files again: users, scripts, certificates, and the passwords of nodes in the
-config file. Connections and locks stay.

A socket of systemd (LISTEN_FDS) is taken in place of -listen, and one named metrics in place of -metrics. READY=1,
RELOADING=1, STOPPING=1 and WATCHDOG=1 are reported to it.

Its exit status is 69 where an address is in use, and 64 where a setting is wrong.`

// serving holds the settings of serve.
type serving struct {
	listen, users, scripts, metrics string
	cert                            pair
	socketMode                      fs.FileMode
	noTTL, drain, lameDuck          time.Duration
	clients                         int
	force, embedded                 bool
}

// server is a process of serve.
type server struct {
	*settings
	serving
	log          *slog.Logger
	life         *life
	listenPair   *watched[*tls.Certificate] // nil without TLS
	reloadFailed atomic.Bool                // the last one
}

func serve(ctx context.Context, env *environment, args []string) error {
	s := &server{settings: newSettings(env, "serve [settings]", aboutServe)}
	rest, err := s.parse(args)
	s.serving, s.log = s.settings.serve, s.logger()
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return usage("serve takes no argument %q; the nodes are -nodes a,b,c", rest[0])
	case s.embedded && s.now.text+s.next.text != "":
		return usage("-embedded brings its own masters: leave -nodes and -next-nodes out")
	}
	s.life = live()
	defer s.life.close()
	reap()
	return s.run(ctx)
}

func (s *server) run(ctx context.Context) error {
	if s.embedded {
		masters, err := embedded.Start(3)
		if err != nil {
			return err
		}
		defer masters.Close()
		s.now.text = strings.Join(masters.Nodes(), ",")
	}
	cfg := frontend.Config{MaxTTL: s.longest(), Fenced: s.fenced, NoTTL: s.noTTL, Force: s.force, Logger: s.log, Name: s.name}
	var err error
	if cfg.Users, err = s.readUsers(); err != nil {
		return err
	}
	if cfg.Scripts, err = s.readScripts(); err != nil {
		return err
	}
	var secure *tls.Config
	if secure, s.listenPair, err = s.cert.listenTLS(s.log); err != nil {
		return err
	}
	shown := operators{
		name: s.name, began: time.Now(), reloadFailed: s.reloadFailed.Load,
		leaves: func() bool { return s.life.in() != working },
	}
	if s.metrics != "" {
		s.hooks = shown.hooks()
	}
	if cfg.Client, err = s.connect(s.log); err != nil {
		return err
	}
	defer cfg.Client.Close()
	listener, err := listen("listen", s.listen, s.socketMode)
	if err != nil {
		return err
	}
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	cfg.Limits.Clients = s.clientsAllowed(len(cfg.Client.Stats().Nodes))
	front := frontend.New(cfg)
	if s.metrics != "" {
		l, err := listen("metrics", s.metrics, 0)
		if err != nil {
			listener.Close()
			return err
		}
		shown.client, shown.front = cfg.Client, front
		defer shown.serve(l)()
	}
	s.greet(listener, cfg)
	ended := make(chan error, 1)
	go func() { ended <- front.Serve(listener) }()
	notify("READY=1")
	go beat(s.life.over, func() bool { front.Stats(); cfg.Client.Stats(); return true }) // both take the locks needed for the work
	err = s.life.wait(ctx, ended, func() { s.reload(front) })
	notify("STOPPING=1")
	if err == nil {
		s.life.leave(s.lameDuck, ended)
	}
	drain, cancel := s.life.drain(s.serving.drain)
	defer cancel()
	front.Stop(drain)
	_ = cfg.Client.Shutdown(drain) // the releases of departed clients
	return err
}

// greet reports the server's addresses, with notes for the operator.
func (s *server) greet(l net.Listener, cfg frontend.Config) {
	up := 0
	nodes := cfg.Client.Stats().Nodes
	for _, n := range nodes {
		if n.Up {
			up++
		}
	}
	fmt.Fprintf(s.env.out, "redlock serves on %s: %d of %d nodes are up\n", l.Addr(), up, len(nodes))
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() && cfg.Users == nil {
		s.log.Warn("redlock: every host that reaches this address can release locks; set -users", "address", a.String())
	}
}

// The files and connections kept back by a server from its limit: as many as redis-server keeps, and three for each
// node: its connection, the next one, and one to ask whether the node speaks TLS.
const (
	ownFiles  = 32
	nodeFiles = 3
)

// clientsAllowed is the number of client connections left beside those of the nodes: without a vote no client is
// served.
func (s *server) clientsAllowed(nodes int) int {
	wanted := cmp.Or(s.clients, session.DefaultClients)
	left := max(1, maxFiles()-ownFiles-nodeFiles*nodes)
	if left < wanted {
		s.log.Warn("redlock: fewer clients than -clients are accepted: the limit of open files (ulimit -n) leaves no more", "clients", left, "wanted", wanted, "limit", maxFiles())
	}
	return min(wanted, left)
}

func (s *server) readUsers() (frontend.Users, error) {
	if s.users == "" {
		return nil, nil
	}
	text, err := readSecret(s.users)
	if err != nil {
		return nil, usage("-users: %v", err)
	}
	users, err := frontend.ReadUsers(bytes.NewReader(text))
	if err != nil {
		return nil, usage("-users: %s: %v", s.users, err)
	}
	return users, nil
}

func (s *server) readScripts() (frontend.Scripts, error) {
	if s.scripts == "" {
		return nil, nil
	}
	text, _, err := readWhole(s.scripts)
	if err != nil {
		return nil, usage("-scripts: %v", err)
	}
	scripts, err := frontend.ReadScripts(text)
	if err != nil {
		return nil, usage("-scripts: %s: %v", s.scripts, err)
	}
	return scripts, nil
}
