package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
)

// errHelp ends a command that has shown its help.
var errHelp = errors.New("help was asked for")

// settings holds the values of the table's rows for one command. A flag takes precedence over a variable, and a
// variable over the file.
type settings struct {
	env     *environment
	command string
	help    func()
	config  string
	given   map[string]bool // as a flag or a variable
	lines   map[string]line // of the config file
	text    string          // of it

	fleet
	nodeTimeout time.Duration
	name        string
	verbose     bool
	hooks       redlock.Hooks // of the client
	stragglers  time.Duration // of the client; 0 is its default
	looks       bool          // the client must write nothing beyond the writes of an act

	json, yes bool // of tools
	permitsOf int  // of tools; 0: any number
	nodes     watching
	serve     serving
	run       running
	fence     fencing
}

// newSettings returns the settings of a command, the first word of use. about explains it, in lines.
func newSettings(env *environment, use, about string) *settings {
	s := &settings{env: env, fleet: newFleet(), given: map[string]bool{}}
	s.command, _, _ = strings.Cut(use, " ")
	for i := range table {
		if row := &table[i]; row.byDefault != "" && find(row.name, s.command) == row {
			_ = row.set(s, row.byDefault)
		}
	}
	s.help = func() {
		if env.help != nil {
			env.help(s, about)
			return
		}
		fmt.Fprintf(env.out, "usage: redlock %s\n\n%s\n\n", use, strings.TrimSpace(about))
		for _, row := range s.rows() {
			fmt.Fprint(env.out, row.explain(s))
		}
	}
	return s
}

// rows returns the settings of the command.
func (s *settings) rows() (rows []*setting) {
	for i := range table {
		if table[i].isOf(s.command) {
			rows = append(rows, &table[i])
		}
	}
	return rows
}

// parse reads the settings, and returns the remaining arguments.
func (s *settings) parse(args []string) ([]string, error) {
	rest, err := s.readFlags(args)
	if err == nil && len(s.rows()) > 0 {
		err = s.readVariables()
	}
	if err == nil && s.config != "" {
		err = s.readFile()
	}
	return rest, err
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// undefined begins package flag's error for an unknown flag.
const undefined = "flag provided but not defined: -"

func (s *settings) readFlags(args []string) ([]string, error) {
	flags := flag.NewFlagSet(s.command, flag.ContinueOnError)
	flags.SetOutput(discard{}) // the error is reported once, by the caller
	for _, row := range s.rows() {
		flags.Var(value{row, s}, row.name, "")
	}
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		s.help()
		return nil, errHelp
	} else if err != nil {
		if name, is := strings.CutPrefix(err.Error(), undefined); is {
			err = unknown("-"+name, name, s.command)
		}
		return nil, usage("%v; redlock %s -h lists the settings", err, s.command)
	}
	for _, l := range []*nodeList{&s.now, &s.next} {
		if err := l.checkArgument(); err != nil {
			return nil, err
		}
	}
	rest := flags.Args()
	if at := len(args) - len(rest) - 1; at < 0 || args[at] != "--" { // behind it a name may begin with -
		for _, name := range rest {
			if name == "--" {
				break
			}
			if strings.HasPrefix(name, "-") {
				return nil, usage("%q comes after %q, as a name: settings come before names, and a program after --", name, rest[0])
			}
		}
	}
	return rest, nil
}

// foreign matches the variables set by Kubernetes in each pod for a Service named redlock or redlock-….
var foreign = regexp.MustCompile(`_(SERVICE_(HOST|PORT.*)|PORT|PORT_[0-9]+_(TCP|UDP|SCTP).*)$`)

// ofRun lists the variables of a program running under a lock.
var ofRun = map[string]bool{"REDLOCK_KEY": true, "REDLOCK_TOKEN": true, "REDLOCK_FENCE": true, "REDLOCK_UNTIL": true}

// readVariables reads the settings given as variables. A variable spelled nearly like a setting is a mistake.
func (s *settings) readVariables() error {
	known := map[string]*setting{}
	for i := range table {
		if row := &table[i]; findShared(row.name, s.command) == row {
			known[row.variable()] = row
		}
	}
	for _, variable := range s.env.environ() {
		name, text, _ := strings.Cut(variable, "=")
		rest, isOurs := strings.CutPrefix(name, "REDLOCK_")
		switch row := known[name]; {
		case !isOurs || text == "" || ofRun[name] || foreign.MatchString(name):
		case row == nil && nearest(rest) != "":
			return usage("%v", unknown(name, rest, s.command))
		case row == nil:
			s.logger().Warn("redlock: a variable is no setting: "+name, "settings", "redlock "+s.command+" -h")
		case s.given[row.name] || !row.isOf(s.command):
		default:
			if err := row.set(s, text); err != nil {
				return usage("%s has a wrong value: %v", name, err)
			}
			s.given[row.name] = true
		}
	}
	return nil
}

// logger returns the log of -v, or one of warnings and errors.
func (s *settings) logger() *slog.Logger {
	level := slog.LevelWarn
	if s.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(s.env.err, &slog.HandlerOptions{Level: level}))
}

// connect returns a client of the nodes.
func (s *settings) connect(logger *slog.Logger) (*redlock.Client, error) {
	patience := max(time.Second, s.nodeTimeout) // a node slow to answer may be slow to connect
	cfg := redlock.Config{NodeTimeout: s.nodeTimeout, DialTimeout: patience, StallTimeout: patience, Name: s.name, Logger: logger, Hooks: s.hooks}
	if err := s.configure(&cfg, logger); err != nil {
		return nil, s.placed(err)
	}
	k := knobs.Of(&cfg)
	k.Stragglers, k.Looks, k.AnyToken = s.stragglers, s.looks, s.fence.force
	if s.logins.start(s) {
		cfg.Credentials = s.logins.login
	}
	client, err := redlock.New(cfg)
	if errors.Is(err, redlock.ErrConfig) {
		return nil, s.placed(&exit{exitUsage, err})
	}
	return client, err
}

// fields matches the settings of a client in an error of the library.
var fields = regexp.MustCompile(`(^|[ (:,])(?:Config\.)?(NodeTimeout|DialTimeout|StallTimeout|NextMaxTTL|MaxTTL|NextNodes|NextGroups|Nodes|Groups|Fenced|InitFencing|RecoverFencing|ChangeFencing)\b`)

// flagOf has the flag or the command for each of them.
var flagOf = map[string]string{
	"NodeTimeout": "-node-timeout", "DialTimeout": "-node-timeout", "StallTimeout": "-node-timeout",
	"MaxTTL": "-max-ttl", "NextMaxTTL": "-next-max-ttl", "Nodes": "-nodes", "NextNodes": "-next-nodes",
	"Groups": "-nodes", "NextGroups": "-next-nodes", "Fenced": "-fenced",
	"InitFencing": "redlock fence init", "RecoverFencing": "redlock fence recover", "ChangeFencing": "redlock fence change",
}

// inFlags puts the command's own flags into an error of the library: its user has no Config.
func inFlags(text string) string {
	return fields.ReplaceAllStringFunc(text, func(match string) string {
		at := fields.FindStringSubmatch(match)
		return at[1] + flagOf[at[2]]
	})
}

// placed adds to an error the lines of the file, and the variables, of the settings it names.
func (s *settings) placed(err error) error {
	if e := (*exit)(nil); err == nil || !errors.As(err, &e) || e.status != exitUsage || e.err == nil {
		return err
	}
	text := inFlags(trimName(err))
	for _, row := range s.rows() {
		if !regexp.MustCompile(`(^|[ (:,])-` + row.name + `\b[^-]`).MatchString(text + " ") {
			continue
		}
		if line, is := s.lines[row.name]; is && !s.given[row.name] {
			text += fmt.Sprintf(" (%s, line %d: %s)", s.config, line.number, row.name)
		}
	}
	return usage("%s", text)
}

// trimName removes the name of the library from an error: the command's own name precedes it anyway.
func trimName(err error) string { return strings.TrimPrefix(err.Error(), "redlock: ") }
