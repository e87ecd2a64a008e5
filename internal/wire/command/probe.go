package command

import (
	"errors"
	"fmt"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/refusal"
	"github.com/redlock-go/redlock/resp"
)

// The key of the probes, never a lock's, and a token it does not hold.
const (
	probeKey   = "redlock:probe"
	probeToken = "x"
)

// Probes are commands that find, on a new connection, the forms understood by a node, and load the
// scripts it needs. Their key is absent, so they change nothing. One Probes is used for one
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
	p.script(Release, ReleaseScript, ReleaseSHA1, "1", probeKey, probeToken)
	p.script(Extend, ExtendScript, ExtendSHA1, "1", probeKey, probeToken, "1000")
	if fence != nil {
		p.fence(fence)
	}
	return p
}

// fence loads the scripts of package fencing, and runs them without lock keys: a node that forbids
// them cannot be used.
func (p *Probes) fence(fence *Fence) {
	p.form |= Fenced // so that they count as needed
	p.script(Acquire, fencing.AcquireScript, fencing.AcquireSHA1, "1", fence.Set, probeToken, "0")
	p.script(Extend, fencing.ExtendScript, fencing.ExtendSHA1, "1", fence.Set, probeToken)
	p.script(Acquire, fencing.MemberScript, fencing.MemberSHA1, "1", fence.Set, "read", probeToken)
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

// script loads the script of a kind and tries it. The user may not be allowed to load it while
// another user has loaded it, or may not be allowed to run it. The probes before have shown whether
// the node needs it.
func (p *Probes) script(k Kind, text, sha string, try ...string) {
	var load error // why it is needed and could not be loaded
	p.ask(func(v *resp.Value) error {
		if !v.IsError() {
			if string(v.Bytes) != sha {
				return errors.New("server names a script differently")
			}
			return nil
		}
		switch refused := refusal.Read(v); {
		case !refused.Fatal && !p.form.IsScript(k):
		case refused.Unscripted:
			return unscripted(refused.Err)
		case !refused.Lacks && !refused.OfKey:
			return refused.Err
		default:
			load = refusal.Lacks("script|load")
		}
		return nil
	}, "SCRIPT", "LOAD", text)
	p.ask(func(v *resp.Value) error {
		switch refused := refusal.Read(v); {
		case !v.IsError(), refused.OfKey:
		case refused.Fatal:
			return refused.Err
		case load != nil || !p.form.IsScript(k):
			return load
		case refused.Unscripted:
			return unscripted(refused.Err)
		case refused.Code == "NOPERM":
			return refusal.Lacks("evalsha")
		case refused.Lacks: // a command in the script
			return refused.Err
		}
		return nil // it is loaded, and may be run at another time
	}, append([]string{"EVALSHA", sha}, try...)...)
}

// unscripted is the refusal of a node unable to run a script it needs.
func unscripted(err error) error { return fmt.Errorf("%w: %w", refusal.ErrUnscripted, err) }
