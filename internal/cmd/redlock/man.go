package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/base/build"
)

const aboutMan = `
Man prints the page redlock(1) of the manual, made of the help of all commands. The packages install it.

  redlock man | man -l -
  redlock man > /usr/local/share/man/man1/redlock.1`

func man(ctx context.Context, env *environment, args []string) error {
	s := newSettings(env, "man", aboutMan)
	if rest, err := s.parse(args); err != nil {
		return err
	} else if len(rest) > 0 {
		return usage("man takes no argument")
	}
	p := &manPage{}
	if err := p.write(ctx, env); err != nil {
		return err
	}
	_, err := p.WriteTo(env.out)
	return err
}

// manPage is a page of the manual in the language mdoc(7).
type manPage struct{ bytes.Buffer }

func (p *manPage) write(ctx context.Context, env *environment) error {
	b := build.Read()
	day, err := time.Parse(time.DateOnly, b.Date)
	if err != nil {
		day = time.Now() // of a build without a commit
	}
	fmt.Fprintf(p, ".Dd %s\n.Dt REDLOCK 1\n.Os\n", day.Format("January 2, 2006"))
	p.section("NAME")
	p.lines(".Nm redlock", ".Nd locks on a majority of Redis or Valkey masters")
	p.section("SYNOPSIS")
	for _, sub := range subcommands {
		p.lines(".Nm redlock", ".Cm "+sub.name)
		if slices.ContainsFunc(table, func(row setting) bool { return row.isOf(sub.name) }) {
			p.lines(".Op Ar setting ...")
		}
		if sub.arguments != "" {
			p.lines(".Ar " + escape(sub.arguments))
		}
	}
	p.section("DESCRIPTION")
	p.text(aboutAll)
	for i := range subcommands {
		sub := &subcommands[i]
		p.lines(".Ss " + sub.name + ": " + escape(sub.summary))
		if sub.name == "help" { // it is about the others
			p.text("Help shows the commands, or what one does.")
			continue
		}
		// Each command shows its help as to a person, but here.
		err := sub.run(ctx, &environment{in: strings.NewReader(""), out: io.Discard, err: io.Discard, environ: func() []string { return nil },
			help: func(s *settings, about string) { p.command(s, about) }}, []string{"-h"})
		if err != errHelp {
			return fmt.Errorf("help of %s: %w", sub.name, err)
		}
	}
	p.section("SETTINGS OF ALL CLIENTS")
	p.text("These are the commands " + strings.ReplaceAll(forClients, " ", ", ") + ".")
	p.settings(newSettings(env, "man", ""), func(row *setting) bool { return row.of == forClients })
	p.section("ENVIRONMENT")
	p.text("A setting can also be a variable: -max-ttl is REDLOCK_MAX_TTL. Settings of a single call, such as -n, are flags alone.")
	p.section("FILES")
	p.lines(".Bl -tag -width Ds", ".It Pa /etc/redlock/redlock.conf", "settings of the packages' units", ".El")
	p.section("EXIT STATUS")
	p.lines(".Bl -tag -width Ds")
	for _, status := range statuses {
		fmt.Fprintf(p, ".It %d\n", status.number)
		p.sentences(status.meaning)
	}
	p.lines(".El", ".Pp", "That of run is the program's.")
	p.section("SEE ALSO")
	p.lines(".Xr flock 1 ,", ".Xr redis-server 1 ,", ".Xr systemd.service 5", ".Pp", ".Lk https://github.com/redlock-go/redlock")
	return nil
}

// command describes a command, with its settings that few others have.
func (p *manPage) command(s *settings, about string) {
	p.text(about)
	if own := func(row *setting) bool { return row.isOf(s.command) && row.of != forClients }; slices.ContainsFunc(s.rows(), own) {
		p.lines(".Pp", "Its settings:")
		p.settings(s, own)
	}
}

// settings writes rows of the table.
func (p *manPage) settings(s *settings, is func(*setting) bool) {
	p.lines(".Bl -tag -width Ds")
	for i := range table {
		row := &table[i]
		if !is(row) {
			continue
		}
		kind, help := flag.UnquoteUsage(&flag.Flag{Usage: row.help})
		item := ".It Fl " + row.name
		if !row.isSwitch(s) {
			item += " Ar " + kind
		}
		p.lines(item)
		if row.byDefault != "" && row.byDefault != "0" {
			help += " (default " + row.byDefault + ")"
		}
		p.sentences(help)
	}
	p.lines(".El")
}

func (p *manPage) section(name string) { p.lines(".Sh " + name) }
func (p *manPage) lines(lines ...string) {
	for _, line := range lines {
		p.WriteString(line + "\n")
	}
}

// text writes paragraphs, and leaves indented lines as they are.
func (p *manPage) text(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if !strings.HasPrefix(paragraph, " ") {
			if i > 0 {
				p.lines(".Pp")
			}
			p.sentences(paragraph)
			continue
		}
		p.lines(".Bd -literal -offset indent")
		for line := range strings.SplitSeq(paragraph, "\n") {
			p.lines(escape(strings.TrimPrefix(line, "  ")))
		}
		p.lines(".Ed")
	}
}

// sentenceEnd matches the end of a sentence, and anything mdoc takes for one.
var sentenceEnd = regexp.MustCompile(`([.!?][)"']*)\s+`)

// width is the width of a source line, in bytes.
const width = 78

// sentences begins each sentence on a line of its own, as mdoc wants it.
func (p *manPage) sentences(text string) {
	text = strings.Join(strings.Fields(text), " ")
	for sentence := range strings.SplitSeq(sentenceEnd.ReplaceAllString(text, "$1\n"), "\n") {
		line := ""
		for word := range strings.SplitSeq(sentence, " ") {
			word = escape(word)
			if line != "" && len(line)+1+len(word) > width {
				p.lines(line)
				line = ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		p.lines(line)
	}
}

// escape makes a text stand for itself.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "–", `\(en`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
