package command

import (
	"errors"

	"github.com/redlock-go/redlock/internal/refusal"
	"github.com/redlock-go/redlock/resp"
)

// What is probed with: a key that no lock has, and a token that it does not hold.
const (
	probeKey   = "redlock:probe"
	probeToken = "x"
)

// Probes are the commands that tell, on a new connection, what a node understands,
// and load the scripts that it needs. On a key that is absent they change nothing.
// One Probes is used for one connection.
type Probes struct {
	form  Form
	asked []probe
}

// probe is one command, and what takes in its reply.
type probe struct {
	words  []string
	answer func(*resp.Value) error
}

// NewProbes is the probes of one connection; with scripted set native commands are
// not tried.
func NewProbes(scripted bool) *Probes {
	p := new(Probes)
	if !scripted {
		p.add(p.releasesBy(DelIfEq), "DELIFEQ", probeKey, probeToken)
		p.add(p.releasesBy(DelEx), "DELEX", probeKey, "IFEQ", probeToken)
		p.add(p.extends, "SET", probeKey, probeToken, "IFEQ", probeToken, "PX", "1000")
	}
	p.script(Release, ReleaseScript, ReleaseSHA1, "1", probeKey, probeToken)
	p.script(Extend, ExtendScript, ExtendSHA1, "1", probeKey, probeToken, "1000")
	return p
}

func (p *Probes) add(answer func(*resp.Value) error, words ...string) {
	p.asked = append(p.asked, probe{words, answer})
}

// Len is the number of commands.
func (p *Probes) Len() int { return len(p.asked) }

// Command is command i, as words.
func (p *Probes) Command(i int) []string { return p.asked[i].words }

// Answer takes in the reply to command i; all of them, in order. An error says that
// the node cannot be used.
func (p *Probes) Answer(i int, v *resp.Value) error { return p.asked[i].answer(v) }

// Form is what the answers add up to.
func (p *Probes) Form() uint8 { return uint8(p.form) }

// releasesBy takes in whether a command works that releases. If more than one
// does, it is the first.
func (p *Probes) releasesBy(form Form) func(*resp.Value) error {
	return func(v *resp.Value) error {
		works, err := probed(v, v.Kind == resp.Integer)
		if works && p.form&releases == 0 {
			p.form |= form
		}
		return err
	}
}

// extends takes in whether SET knows IFEQ. Where the key of the probe is out of
// bounds, this goes by whether there is a command to release by, which no server
// has without IFEQ.
func (p *Probes) extends(v *resp.Value) error {
	works, err := probed(v, v.Null || v.IsOK())
	if works && (!v.IsError() || p.form&releases != 0) {
		p.form |= SetIfEq
	}
	return err
}

// probed says whether the answer to a probe shows that the command works; fits
// tells what it answers then. A key that is out of bounds shows it too: access
// is checked only of commands that exist, and locks have other keys.
func probed(v *resp.Value, fits bool) (works bool, err error) {
	switch {
	case v.IsError():
		return refusal.OfKey(v.Bytes), refusal.Fatality(v.Bytes)
	case !fits:
		return false, refusal.ErrUnfit
	}
	return true, nil
}

// script loads the script of a kind, and tries it: it may not be allowed to be
// loaded, and have been by another, or not be allowed to run. Whether a node needs
// it is known by then, from the probes before.
func (p *Probes) script(k Kind, text, sha string, try ...string) {
	var load error // why it is needed and could not be loaded
	p.add(func(v *resp.Value) error {
		if !v.IsError() {
			if string(v.Bytes) != sha {
				return errors.New("server names a script differently")
			}
			return nil
		}
		switch fatal, err := refusal.Read(v.Bytes); {
		case !fatal && !p.form.IsScript(k):
		case !errors.Is(err, refusal.ErrForbidden):
			return err
		default:
			load = refusal.Lacks("script|load")
		}
		return nil
	}, "SCRIPT", "LOAD", text)
	p.add(func(v *resp.Value) error {
		if !v.IsError() || refusal.OfKey(v.Bytes) {
			return nil
		}
		fatal, err := refusal.Read(v.Bytes)
		switch {
		case fatal:
			return err
		case load != nil || !p.form.IsScript(k):
			return load
		case string(v.Code()) == "NOPERM":
			return refusal.Lacks("evalsha")
		case errors.Is(err, refusal.ErrForbidden):
			return err // of a command that the script runs
		}
		return nil // it is loaded, and may be run at another time
	}, append([]string{"EVALSHA", sha}, try...)...)
}
