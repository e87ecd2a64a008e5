package realredis

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Options are how to start a server. The zero value is a master without a
// password, on a TCP port of 127.0.0.1.
type Options struct {
	// Kind is the kind of server, unless Command is set.
	Kind Kind
	// Command is the program and its first arguments; Kind.Command() if empty.
	Command []string
	// Args are further settings, such as "--maxmemory", "10mb". They win over those of the other
	// options.
	Args []string
	// Password is the clients' password, if any.
	Password string
	// Users are further users, each a name and the rules of its access list: "joe on >secret ~*
	// +get".
	Users []string
	// Unix makes the server listen on a Unix socket too: Server.Socket.
	Unix bool
	// TLS makes the server listen on a TLS port too: Server.TLSAddr.
	TLS *TLS
	// Persistent makes the server write each change to disk before it answers it, and keep its data
	// over a restart.
	Persistent bool
	// Start starts the process, on chosen processors for instance; cmd.Start if nil.
	Start func(cmd *exec.Cmd) error
}

// TLS is the material of a TLS server, all of it in PEM.
type TLS struct {
	Certificate, Key []byte
	// ClientCA is the authority behind the clients' certificates. They need none if it is empty.
	ClientCA []byte
}

// args are the settings of a server listening on s.port and s.tlsPort.
func (s *Server) args() []string {
	args := []string{"--port", s.port.String(), "--bind", "127.0.0.1",
		"--daemonize", "no", "--dir", s.DataDir(), "--save", ""}
	if s.opts.Persistent {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	} else {
		args = append(args, "--appendonly", "no")
	}
	if s.opts.Password != "" {
		args = append(args, "--requirepass", s.opts.Password)
	}
	for _, user := range s.opts.Users {
		args = append(append(args, "--user"), strings.Fields(user)...)
	}
	if s.opts.Unix {
		args = append(args, "--unixsocket", s.Socket())
	}
	if s.opts.TLS != nil {
		args = append(args, "--tls-port", s.tlsPort.String(),
			"--tls-cert-file", s.file("certificate"), "--tls-key-file", s.file("key"))
		if s.opts.TLS.ClientCA != nil {
			args = append(args, "--tls-ca-cert-file", s.file("client-ca"), "--tls-auth-clients", "yes")
		} else {
			args = append(args, "--tls-auth-clients", "no")
		}
	}
	return append(args, s.opts.Args...)
}

// prepare makes the files named in the settings.
func (s *Server) prepare() error {
	if !s.opts.Persistent {
		if err := os.RemoveAll(s.DataDir()); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(s.DataDir(), 0o700); err != nil {
		return err
	}
	if s.opts.TLS == nil {
		return nil
	}
	for name, pem := range map[string][]byte{"certificate": s.opts.TLS.Certificate, "key": s.opts.TLS.Key, "client-ca": s.opts.TLS.ClientCA} {
		if err := os.WriteFile(s.file(name), pem, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// file is the path of a file of the server.
func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }
