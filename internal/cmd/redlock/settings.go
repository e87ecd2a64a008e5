package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/frontend"
)

// errHelp ends a command that has shown its help.
var errHelp = errors.New("help was asked for")

// settings is the flags of a command. Each is also a variable, and a line of the config file; a
// flag comes before the variable, and that before the file.
type settings struct {
	*flag.FlagSet
	env    *environment
	config string

	nodes, next string
	maxTTL      time.Duration
	nodeTimeout time.Duration
	fenced      bool
	name        string
	verbose     bool
}

// newSettings returns the settings of a command. about explains it, in lines.
func newSettings(env *environment, use, about string) *settings {
	s := &settings{FlagSet: flag.NewFlagSet("redlock "+use, flag.ContinueOnError), env: env}
	s.SetOutput(env.out)
	s.Usage = func() {
		fmt.Fprintf(env.out, "usage: redlock %s\n\n%s\n\n", use, strings.TrimSpace(about))
		s.PrintDefaults()
	}
	s.StringVar(&s.config, "config", "", "a `file` of \"name value\" lines, one for each setting")
	s.BoolVar(&s.verbose, "v", false, "log what happens to standard error")
	return s
}

// addNodes adds the settings of a client.
func (s *settings) addNodes() {
	s.StringVar(&s.nodes, "nodes", "", "the masters, as host:port or URLs, with commas between; passwords only in REDLOCK_NODES or the config `file`")
	s.StringVar(&s.next, "next-nodes", "", "the nodes after a change that is under way, as -nodes: see conn/OPERATORS.md")
	s.DurationVar(&s.maxTTL, "max-ttl", time.Minute, "the longest TTL that is asked for, the same in all commands; Config.MaxTTL of Go clients must be 2% and 1s more: 62.2s for 1m")
	s.DurationVar(&s.nodeTimeout, "node-timeout", 0, "how long the nodes have to answer; 0 is a twentieth of the TTL, at most 50ms")
	s.BoolVar(&s.fenced, "fenced", false, "locks have fencing tokens; the nodes need redlock fence init once")
	s.StringVar(&s.name, "name", "", "shown beside the locks of this process, such as its host")
}

// parse reads the settings, and returns the arguments after them.
func (s *settings) parse(args []string) ([]string, error) {
	s.FlagSet.SetOutput(discard{}) // the error is reported once, by its caller
	if err := s.Parse(args); errors.Is(err, flag.ErrHelp) {
		s.SetOutput(s.env.out)
		s.Usage()
		return nil, errHelp
	} else if err != nil {
		return nil, usage("%v; %s -h lists the settings", err, s.Name())
	}
	if hasPassword(s.nodes) || hasPassword(s.next) {
		return nil, usage("-nodes has a password, which every user of this machine can list: give it in REDLOCK_NODES or the config file")
	}
	given := map[string]bool{}
	s.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var err error
	s.VisitAll(func(f *flag.Flag) {
		variable := "REDLOCK_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value := s.env.getenv(variable); value != "" && !given[f.Name] && err == nil {
			given[f.Name] = true
			if s.Set(f.Name, value) != nil {
				err = usage("%s has a value that -%s does not take", variable, f.Name)
			}
		}
	})
	if err == nil && s.config != "" {
		err = s.read(given)
	}
	return s.Args(), err
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// read reads the config file. Settings of other commands are skipped.
func (s *settings) read(given map[string]bool) error {
	file, err := os.Open(s.config)
	if err != nil {
		return usage("config file: %v", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		name, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if name == "" || name[0] == '#' || given[name] || s.Lookup(name) == nil {
			continue
		}
		if s.Set(name, strings.TrimSpace(value)) != nil {
			return usage("%s, line %d: %s has a value that it does not take", s.config, n, name)
		}
	}
	return lines.Err()
}

// hasPassword reports whether one of the nodes has a password in it.
func hasPassword(nodes string) bool {
	for node := range strings.SplitSeq(nodes, ",") {
		_, rest, isURL := strings.Cut(node, "://")
		user, _, has := strings.Cut(rest, "@")
		if isURL && has && strings.Contains(user, ":") {
			return true
		}
	}
	return false
}

// logger returns the log of -v, or one of warnings and worse.
func (s *settings) logger() *slog.Logger {
	level := slog.LevelWarn
	if s.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(s.env.err, &slog.HandlerOptions{Level: level}))
}

// connect returns a client of the nodes.
func (s *settings) connect(logger *slog.Logger) (*redlock.Client, error) {
	if s.nodes == "" {
		return nil, usage("the nodes are missing: -nodes host:port,host:port,host:port, or REDLOCK_NODES")
	}
	client, err := redlock.New(redlock.Config{
		Nodes: list(s.nodes), NextNodes: list(s.next), MaxTTL: frontend.MaxTTL(s.maxTTL), NodeTimeout: s.nodeTimeout, Fenced: s.fenced, Name: s.name, Logger: logger,
	})
	if errors.Is(err, redlock.ErrConfig) {
		return nil, &exit{exitUsage, err}
	}
	return client, err
}

// list is the elements of a setting with commas between.
func list(text string) (all []string) {
	for element := range strings.SplitSeq(text, ",") {
		if element = strings.TrimSpace(element); element != "" {
			all = append(all, element)
		}
	}
	return all
}

// trimName is the text of an error without the name of the library, which precedes it anyway.
func trimName(err error) string { return strings.TrimPrefix(err.Error(), "redlock: ") }
