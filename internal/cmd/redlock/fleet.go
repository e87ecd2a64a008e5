package main

import (
	"crypto/tls"
	"log/slog"
	"strings"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
)

// fleet has the settings of the masters, with both lists during a change.
type fleet struct {
	now, next          nodeList
	maxTTL, nextMaxTTL time.Duration
	fenced             bool
	tls                masterTLS
	secure             *watched[*tls.Config] // of rediss:// nodes; nil without settings for it
	logins             logins
}

func newFleet() fleet {
	return fleet{now: nodeList{flag: "nodes"}, next: nodeList{flag: "next-nodes"}}
}

// longest is the longest TTL kept by the nodes.
func (f *fleet) longest() time.Duration {
	if f.nextMaxTTL > 0 {
		return min(f.maxTTL, f.nextMaxTTL)
	}
	return f.maxTTL
}

// isChanging reports whether a change is under way.
func (f *fleet) isChanging() bool { return f.next.text != "" || f.nextMaxTTL > 0 }

// configure sets the nodes of a client. They become groups if one of the lists has several: a single group is the same
// as its nodes.
func (f *fleet) configure(cfg *redlock.Config, log *slog.Logger) error {
	now, err := f.now.groups()
	if err != nil {
		return err
	}
	next, err := f.next.groups()
	if err != nil {
		return err
	}
	switch {
	case len(now) == 0:
		return usage("the nodes are missing: -nodes host:port,host:port,host:port, or REDLOCK_NODES")
	case len(now) > 1 || len(next) > 1:
		cfg.Groups, cfg.NextGroups = now, next
	case len(next) == 1:
		cfg.Nodes, cfg.NextNodes = now[0], next[0]
	default:
		cfg.Nodes = now[0]
	}
	cfg.MaxTTL, cfg.NextMaxTTL, cfg.Fenced = f.maxTTL, f.nextMaxTTL, f.fenced
	if f.secure, err = f.tls.watch(log, f.now.text+f.next.text); err != nil {
		return usage("%v", err)
	}
	if f.secure != nil {
		cfg.TLSFor = func(string) *tls.Config { return f.secure.get() }
	}
	return nil
}

// nodeList is the value of -nodes or -next-nodes. Its errors do not quote it, since it may have passwords.
type nodeList struct {
	flag, text string
	times      int // how often it was given
}

func (l *nodeList) set(text string) {
	l.text = text
	l.times++
}

// checkArgument refuses a list given twice, and one with passwords: any user can list arguments.
func (l *nodeList) checkArgument() error {
	switch {
	case l.times > 1:
		return usage("-%s is given %d times: give it once, with ; between groups: -%s 'a,b,c;d,e,f'", l.flag, l.times, l.flag)
	case hasPassword(l.text):
		return usage("-%s has a password, which every user of this machine can list: give it in REDLOCK_%s or the config file",
			l.flag, strings.ToUpper(strings.ReplaceAll(l.flag, "-", "_")))
	}
	return nil
}

// groups returns the groups of the list: none for an empty list.
func (l *nodeList) groups() (all [][]string, err error) {
	if strings.TrimSpace(l.text) == "" {
		return nil, nil
	}
	texts := strings.Split(l.text, ";")
	for i, text := range texts {
		nodes := list(text)
		switch {
		case len(nodes) > 0:
		case len(texts) == 1:
			return nil, usage("-%s has no node in it: want host:port,host:port,host:port", l.flag)
		default:
			return nil, usage("-%s has no node in group %d of %d: there is one ; between two groups, and none at the end", l.flag, i+1, len(texts))
		}
		all = append(all, nodes)
	}
	return all, nil
}

// check parses the addresses of the list.
func (l *nodeList) check() error {
	groups, err := l.groups()
	for _, group := range groups {
		if err == nil {
			_, err = conn.ParseAddresses(group)
		}
	}
	return err
}

// list returns the elements of a setting separated by commas.
func list(text string) (all []string) {
	for element := range strings.SplitSeq(text, ",") {
		element = strings.TrimSpace(element)
		if element != "" {
			all = append(all, element)
		}
	}
	return all
}

// hasPassword reports whether one of the nodes has a password.
func hasPassword(nodes string) bool {
	for node := range strings.FieldsFuncSeq(nodes, func(r rune) bool { return r == ',' || r == ';' }) {
		_, rest, isURL := strings.Cut(node, "://")
		user, _, has := strings.Cut(rest, "@")
		if isURL && has && strings.Contains(user, ":") {
			return true
		}
	}
	return false
}
