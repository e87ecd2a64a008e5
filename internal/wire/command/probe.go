package command

import (
	"fmt"
	"strings"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/refusal"
	"github.com/redlock-go/redlock/resp"
)

// The key of the probes, never a lock's, and a token it does not hold.
const (
	probeKey   = "redlock:probe"
	probeToken = "x"
)

// Probes are commands that find, on a new connection, the forms understood by a node, and run the
// scripts it needs: so it knows them. Their key is absent, so they change nothing. One Probes is used for one
// connection.
type Probes struct {
	form Form
	ask  func(answer func(*resp.Value) error, words ...string)
}

// NewProbes makes the probes of one connection, by a call of ask for each command. answer reads the
// reply; all of them are read in order, and after an error the node cannot be used. With scripted
// native commands are not tried. fence is nil if the scripts of package fencing are not needed.
func NewProbes(scripted bool, fence *Fence, ask func(answer func(*resp.Value) error, words ...string)) *Probes {
	p := &Probes{ask: ask}
	if !scripted {
		p.ask(p.releasesBy(DelIfEq), "DELIFEQ", probeKey, probeToken)
		p.ask(p.releasesBy(DelEx), "DELEX", probeKey, "IFEQ", probeToken)
	}
	p.script(Release, ReleaseScript, "1", probeKey, probeToken)
	p.script(Extend, ExtendScript, "1", probeKey, probeToken, "1000")
	p.call(Extend, "EVALSHA", ExtendSHA1, "1", probeKey, probeToken, "1000")
	if fence != nil {
		p.fence(fence)
	}
	return p
}

// fence runs the scripts of package fencing without lock keys: a node that forbids them cannot be
// used.
func (p *Probes) fence(fence *Fence) {
	p.form |= Fenced // so that they count as needed
	p.script(Acquire, fencing.AcquireScript, "1", fence.Set, probeToken, "0")
	p.script(Extend, fencing.ExtendScript, "1", fence.Set, probeToken)
	p.script(Acquire, fencing.MemberScript, "1", fence.Set, "read", probeToken)
}

// Form is the form shown by the answers.
func (p *Probes) Form() uint16 { return uint16(p.form) }

// releasesBy notes a native release command, if it works. The first such command is used.
func (p *Probes) releasesBy(form Form) func(*resp.Value) error {
	return func(v *resp.Value) error {
		works, err := probed(v, v.Kind == resp.Integer)
		if works && p.form&releases == 0 {
			p.form |= form
		}
		return err
	}
}

// probed reports whether the answer to a probe shows a working command; fits recognizes its answer.
// A refused key shows it too: access is checked only for existing commands, and locks have other
// keys.
func probed(v *resp.Value, fits bool) (works bool, err error) {
	switch refused := refusal.Read(v); {
	case v.IsError():
		return refused.OfKey, refused.Fatality()
	case !fits:
		return false, refusal.ErrUnfit
	}
	return true, nil
}

// script calls the script of a kind by its text. The probes before have shown whether the node needs it.
func (p *Probes) script(k Kind, text string, args ...string) { p.call(k, "EVAL", text, args...) }

// call tries a script. The user may not be allowed to call it this way, or to run what is in it.
func (p *Probes) call(k Kind, by, name string, args ...string) {
	p.ask(func(v *resp.Value) error {
		switch refused := refusal.Read(v); {
		case !v.IsError(), refused.OfKey:
		case refused.Fatal:
			return refused.Err
		case !p.form.IsScript(k):
		case refused.Unscripted:
			return unscripted(refused.Err)
		case refused.Code == "NOPERM":
			return refusal.Lacks(strings.ToLower(by))
		case refused.Lacks, refused.Stays(): // a command in the script; or the server cannot compile it
			return refused.Err
		}
		return nil // it may be run at another time
	}, append([]string{by, name}, args...)...)
}

// unscripted is the refusal of a node unable to run a script it needs.
func unscripted(err error) error { return fmt.Errorf("%w: %w", refusal.ErrUnscripted, err) }
