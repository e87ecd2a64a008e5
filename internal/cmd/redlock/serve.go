package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
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

SIGTERM and SIGINT end it: commands under way are answered, and locks with KEEP are released.`

// serving is the settings of serve.
type serving struct {
	*settings
	listen, users, tlsCert, tlsKey, scripts, metrics string
	noTTL, drain                                     time.Duration
	clients                                          int
	force, embedded                                  bool
}

func serve(ctx context.Context, env *environment, args []string) error {
	s := serving{settings: newSettings(env, "serve [settings]", aboutServe)}
	s.addNodes()
	timeout := s.Lookup("node-timeout")
	timeout.Usage, timeout.DefValue = "how long the nodes have to answer: on a busy machine they are late, and a client of one Redis waits for it", "500ms"
	_ = timeout.Value.Set(timeout.DefValue)
	s.StringVar(&s.listen, "listen", "127.0.0.1:6380", "the `address` to serve on, or the path of a socket")
	s.StringVar(&s.users, "users", "", "a `file` of users: name, password or sha256:hex, and an optional prefix of keys on each line")
	s.StringVar(&s.tlsCert, "tls-cert", "", "a certificate `file`; serve by TLS")
	s.StringVar(&s.tlsKey, "tls-key", "", "the key `file` of -tls-cert")
	s.StringVar(&s.scripts, "scripts", "", "a `file` of lock scripts in Lua, each behind a line \"-- alias SHA1\" of the script that it stands for")
	s.StringVar(&s.metrics, "metrics", "", "the `address` of /metrics and of a page for operators at /, such as :9121")
	s.DurationVar(&s.noTTL, "no-ttl", 0, "grant locks without an expiry for this long and keep them alive; 0 refuses them")
	s.DurationVar(&s.drain, "drain", 5*time.Second, "how long commands under way have at the end")
	s.IntVar(&s.clients, "clients", 0, "bounds the connections; 0 is 16384")
	s.BoolVar(&s.force, "force", false, "allow scripts that change the lock of any owner")
	s.BoolVar(&s.embedded, "embedded", false, "bring three masters inside the process: for trying only")
	rest, err := s.parse(args)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return usage("serve takes no argument %q; the nodes are -nodes a,b,c", rest[0])
	case s.embedded && s.now.text+s.next.text != "":
		return usage("-embedded brings its own masters: leave -nodes and -next-nodes out")
	}
	return s.run(ctx)
}

func (s *serving) run(ctx context.Context) error {
	if s.embedded {
		masters, err := embedded.Start(3)
		if err != nil {
			return err
		}
		defer masters.Close()
		s.now.text = strings.Join(masters.Nodes(), ",")
	}
	logger := s.logger()
	cfg := frontend.Config{
		MaxTTL: s.longest(), Fenced: s.fenced, NoTTL: s.noTTL, Force: s.force,
		Limits: session.Limits{Clients: s.clients}, Logger: logger,
	}
	var err error
	if cfg.Users, err = s.readUsers(); err != nil {
		return err
	}
	if cfg.Scripts, err = s.readScripts(); err != nil {
		return err
	}
	secure, err := s.certificate()
	if err != nil {
		return err
	}
	var operators page
	if s.metrics != "" {
		s.hooks = operators.hooks()
	}
	if cfg.Client, err = s.connect(logger); err != nil {
		return err
	}
	defer cfg.Client.Close()
	listener, err := listen(s.listen)
	if err != nil {
		return usage("-listen: %v", err)
	}
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	front := frontend.New(cfg)
	if s.metrics != "" {
		l, err := listen(s.metrics)
		if err != nil {
			listener.Close()
			return usage("-metrics: %v", err)
		}
		defer serveMetrics(l, front, cfg.Client, &operators)()
	}
	s.greet(ctx, logger, listener, cfg)
	ended := make(chan error, 1)
	go func() { ended <- front.Serve(listener) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.Background(), s.drain)
	defer cancel()
	front.Stop(drain)
	_ = cfg.Client.Shutdown(drain) // the releases of departed clients
	return err
}

// greet reports where the server listens, with notes for the operator.
func (s *serving) greet(_ context.Context, logger *slog.Logger, l net.Listener, cfg frontend.Config) {
	up := 0
	nodes := cfg.Client.Stats().Nodes
	for _, n := range nodes {
		if n.Up {
			up++
		}
	}
	fmt.Fprintf(s.env.out, "redlock serves on %s: %d of %d nodes are up\n", l.Addr(), up, len(nodes))
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() && cfg.Users == nil {
		logger.Warn("redlock: every host that reaches this address can release locks; set -users", "address", a.String())
	}
}

// listen listens on host:port, or on the path of a socket.
func listen(address string) (net.Listener, error) {
	if len(address) > 0 && address[0] == '/' {
		return net.Listen("unix", address)
	}
	return net.Listen("tcp", address)
}

func (s *serving) readUsers() (frontend.Users, error) {
	if s.users == "" {
		return nil, nil
	}
	file, err := os.Open(s.users)
	if err != nil {
		return nil, usage("-users: %v", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && runtime.GOOS != "windows" && info.Mode()&(fs.ModePerm&0o077) != 0 {
		return nil, usage("-users: other users of this machine can read %s: chmod 600 it", s.users)
	}
	users, err := frontend.ReadUsers(file)
	if err != nil {
		return nil, usage("-users: %s: %v", s.users, err)
	}
	return users, nil
}

func (s *serving) readScripts() (frontend.Scripts, error) {
	if s.scripts == "" {
		return nil, nil
	}
	text, err := os.ReadFile(s.scripts)
	if err != nil {
		return nil, usage("-scripts: %v", err)
	}
	scripts, err := frontend.ReadScripts(text)
	if err != nil {
		return nil, usage("-scripts: %s: %v", s.scripts, err)
	}
	return scripts, nil
}

func (s *serving) certificate() (*tls.Config, error) {
	if s.tlsCert == "" && s.tlsKey == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.tlsCert, s.tlsKey)
	if err != nil {
		return nil, usage("-tls-cert and -tls-key: %v", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
