package main

import (
	"context"
	"maps"
	"sync/atomic"

	"github.com/redlock-go/redlock/conn"
)

// logins holds the users and passwords of the nodes in the config file, by address. Every dial asks for them, so a
// reload changes them.
type logins struct {
	isUsed  [2]bool // nodes, next-nodes: the file has them
	present atomic.Pointer[map[string]conn.Address]
}

// read reads the lists of the file, by the names of their settings.
func (l *logins) read(lines map[string]line) (map[string]conn.Address, error) {
	all := map[string]conn.Address{}
	for i, name := range listNames {
		if !l.isUsed[i] {
			continue
		}
		groups, err := (&nodeList{flag: name, text: lines[name].text}).groups()
		if err != nil {
			return nil, err
		}
		for _, group := range groups {
			nodes, err := conn.ParseAddresses(group)
			if err != nil {
				return nil, usage("-%s: %v", name, err)
			}
			for _, node := range nodes {
				all[node.Host] = node
			}
		}
	}
	return all, nil
}

var listNames = [2]string{"nodes", "next-nodes"}

// start takes the lists from the file, and reports whether there are any.
func (l *logins) start(s *settings) bool {
	for i, name := range listNames {
		l.isUsed[i] = s.lines[name].text != "" && !s.given[name]
	}
	all, err := l.read(s.lines)
	l.present.Store(&all)
	return err == nil && len(all) > 0 // an error comes again, from the client
}

// login is Config.Credentials.
func (l *logins) login(_ context.Context, node string) (user, password string, err error) {
	user, password = (*l.present.Load())[node].Login()
	return user, password, nil
}

// prepare reads the lists again, and returns a function to put their logins in use. isOther reports other nodes, or
// another way to reach them. Present nodes get their login in the file. A node no longer in the file keeps its login.
func (l *logins) prepare(lines map[string]line) (use func(), isOther bool, err error) {
	all, err := l.read(lines)
	if err != nil {
		return nil, false, err
	}
	before := *l.present.Load()
	isOther = !maps.EqualFunc(before, all, func(a, b conn.Address) bool {
		return a.Network == b.Network && a.TLS == b.TLS && a.Database == b.Database && a.Persistent == b.Persistent
	})
	for host, node := range before {
		if _, named := all[host]; !named {
			all[host] = node
		}
	}
	return func() { l.present.Store(&all) }, isOther, nil
}
