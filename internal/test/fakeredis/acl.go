package fakeredis

import (
	"bytes"
	"slices"
	"strings"
)

// Deny forbids commands, as an access list does: "SET" all of a command, "SCRIPT|LOAD" one of its
// subcommands. Calls by scripts count as well, so denying MGET breaks the scripts of plain locks.
// It panics on an unknown command.
func (s *Server) Deny(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		container, _, _ := strings.Cut(name, "|")
		if !onlyInScripts[strings.ToLower(name)] {
			mustKnow(container)
		}
		s.denied[strings.ToLower(name)] = true
	}
}

// onlyInScripts are commands known from the scripts alone.
var onlyInScripts = map[string]bool{"mget": true, "pexpire": true, "zscore": true, "zadd": true, "zrangebyscore": true,
	"zremrangebyscore": true, "zrevrange": true, "zrevrangebyscore": true, "pexpireat": true, "zrem": true, "zcount": true}

// Allow undoes Deny, for all commands if none is named.
func (s *Server) Allow(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(names) == 0 {
		clear(s.denied)
	}
	for _, name := range names {
		delete(s.denied, strings.ToLower(name))
	}
}

// AllowKeys forbids all keys but those with a prefix, as an access list does; an empty one allows
// all again.
func (s *Server) AllowKeys(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prefix = prefix
}

// deniesKey reports whether a command names a forbidden key. The caller holds s.mu.
func (s *Server) deniesKey(cmd *command, args [][]byte) bool {
	prefix := []byte(s.prefix)
	return slices.ContainsFunc(keysOf(cmd.name, args[1:]), func(key []byte) bool {
		return !bytes.HasPrefix(key, prefix)
	})
}

// keysOf finds the keys among the arguments of a command.
func keysOf(name string, args [][]byte) [][]byte {
	switch name {
	case "set", "get", "getrange", "pttl", "pexpiretime", "type", "delifeq", "delex", "zrange":
		return args[:1]
	case "del", "exists":
		return args
	case "eval", "evalsha":
		if n, ok := parseInt(args[1]); ok && n >= 0 && n <= int64(len(args)-2) {
			return args[2 : 2+n]
		}
	}
	return nil
}

// denies reports whether a command is forbidden. The caller holds s.mu.
func (s *Server) denies(cmd *command, args [][]byte) bool {
	return s.denied[cmd.name] || len(args) > 1 && s.denied[subcommand(cmd.name, args)]
}

// noPermission is the answer to a forbidden command.
func (s *Server) noPermission(cmd *command, args [][]byte) string {
	name := cmd.name
	if len(args) > 1 && containers[name] {
		name = subcommand(name, args)
	}
	return s.accessError(s.dialect.noPermission, name)
}

func (s *Server) accessError(around [2]string, name string) string {
	if around[1] == "" { // it does not name the command
		name = ""
	}
	return strings.Replace(around[0], "%u", s.opts.User, 1) + name + around[1]
}

// containers are the commands whose first argument is part of their name.
var containers = map[string]bool{"script": true, "client": true}

func subcommand(name string, args [][]byte) string {
	return name + "|" + strings.ToLower(string(args[1]))
}

// credentials reports whether a user with a password is accepted.
func (s *Server) credentials(user, password string) bool {
	if s.opts.Password == "" { // the only user gives any password
		return user == s.opts.User
	}
	return user == s.opts.User && password == s.opts.Password
}
