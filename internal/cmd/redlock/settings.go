package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redlock-go/redlock"
)

// errHelp ends a command that has shown its help.
var errHelp = errors.New("help was asked for")

// settings is the flags of a command. Each is also a variable, and a line of the config file; a
// flag comes before the variable, and the variable before the file.
type settings struct {
	*flag.FlagSet
	env    *environment
	help   func()
	config string

	fleet
	nodeTimeout time.Duration
	name        string
	verbose     bool
	hooks       redlock.Hooks // of the client
}

// newSettings returns the settings of a command. about explains it, in lines.
func newSettings(env *environment, use, about string) *settings {
	s := &settings{FlagSet: flag.NewFlagSet("redlock "+use, flag.ContinueOnError), env: env, fleet: newFleet()}
	s.SetOutput(env.out)
	s.Usage = func() {} // parse shows the help, once
	s.help = func() {
		fmt.Fprintf(env.out, "usage: redlock %s\n\n%s\n\n", use, strings.TrimSpace(about))
		s.PrintDefaults()
	}
	s.StringVar(&s.config, "config", "", "a `file` of \"name value\" lines, one for each setting")
	s.BoolVar(&s.verbose, "v", false, "log what happens to standard error")
	return s
}

// addNodes adds the settings of a client.
func (s *settings) addNodes() {
	s.fleet.addTo(s)
	s.DurationVar(&s.nodeTimeout, "node-timeout", 0, "how long the nodes have to answer; 0 is a twentieth of the TTL, at most 50ms")
	s.StringVar(&s.name, "name", "", "shown beside the locks of this process, such as its host")
}

// parse reads the settings, and returns the arguments after them.
func (s *settings) parse(args []string) ([]string, error) {
	s.FlagSet.SetOutput(discard{}) // the error is reported once, by its caller
	if err := s.Parse(args); errors.Is(err, flag.ErrHelp) {
		s.SetOutput(s.env.out)
		s.help()
		return nil, errHelp
	} else if err != nil {
		return nil, usage("%v; %s -h lists the settings", err, s.Name())
	}
	for _, l := range []*nodeList{&s.now, &s.next} {
		if err := l.checkArgument(); err != nil {
			return nil, err
		}
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

// logger returns the log of -v, or one of warnings and worse.
func (s *settings) logger() *slog.Logger {
	level := slog.LevelWarn
	if s.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(s.env.err, &slog.HandlerOptions{Level: level}))
}

// shutdown closes a client after its pending releases.
func shutdown(c *redlock.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Shutdown(ctx)
}

// connect returns a client of the nodes.
func (s *settings) connect(logger *slog.Logger) (*redlock.Client, error) {
	cfg := redlock.Config{NodeTimeout: s.nodeTimeout, Name: s.name, Logger: logger, Hooks: s.hooks}
	if err := s.configure(&cfg); err != nil {
		return nil, err
	}
	client, err := redlock.New(cfg)
	if errors.Is(err, redlock.ErrConfig) {
		return nil, &exit{exitUsage, err}
	}
	return client, err
}

// trimName is the text of an error without the name of the library: the command's own name precedes
// it anyway.
func trimName(err error) string { return strings.TrimPrefix(err.Error(), "redlock: ") }
