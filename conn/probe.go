package conn

import (
	"errors"

	"github.com/redlock-go/redlock/resp"
)

// What is probed with: a key that nobody sets, and a token that it does not hold.
const (
	probeKey   = "redlock:probe"
	probeToken = "x"
)

// probes asks for the commands that compare a token natively. On a key that is
// absent they change nothing.
func (g *greeter) probes() []greeting {
	if g.cfg.Scripted {
		return nil
	}
	return []greeting{
		{[]string{"DELIFEQ", probeKey, probeToken}, g.releasesBy(ReleaseDelIfEq)},
		{[]string{"DELEX", probeKey, "IFEQ", probeToken}, g.releasesBy(ReleaseDelEx)},
		{[]string{"SET", probeKey, probeToken, "IFEQ", probeToken, "PX", "1000"}, g.extends},
	}
}

// releasesBy takes in whether a command works that releases. If more than one
// does, it is the first.
func (g *greeter) releasesBy(form ReleaseForm) func(*resp.Value) error {
	return func(v *resp.Value) error {
		works, err := probed(v, v.Kind == resp.Integer)
		if works && g.id.dialect.Release == ReleaseScript {
			g.id.dialect.Release = form
		}
		return err
	}
}

// extends takes in whether SET knows IFEQ. Where the key of the probe is out of
// bounds, this goes by whether there is a command to release by, which no server
// has without IFEQ.
func (g *greeter) extends(v *resp.Value) error {
	works, err := probed(v, v.Null || v.IsOK())
	if works && (!v.IsError() || g.id.dialect.Release != ReleaseScript) {
		g.id.dialect.Extend = ExtendSetIfEq
	}
	return err
}

// probed says whether the answer to a probe shows that the command works; fits
// tells what it answers then. A key that is out of bounds shows it too: access
// is checked only of commands that exist, and locks have other keys.
func probed(v *resp.Value, fits bool) (works bool, err error) {
	switch {
	case v.IsError():
		return ForbidsKey(v.Bytes), Fatality(v.Bytes)
	case !fits:
		return false, errUnfit
	}
	return true, nil
}

// scripts loads the scripts, and tries each where that is asked for. Whether a
// node needs them is known by then, from the answers to the probes.
func (g *greeter) scripts() (gs []greeting) {
	for i := range g.cfg.Scripts {
		s := &g.cfg.Scripts[i]
		var load error // why it is needed and could not be loaded
		gs = append(gs, greeting{[]string{"SCRIPT", "LOAD", s.Text}, func(v *resp.Value) error {
			if !v.IsError() {
				if string(v.Bytes) != s.SHA1 {
					return errors.New("server names a script differently")
				}
				return nil
			}
			switch fatal, err := Refusal(v.Bytes); {
			case !fatal && !s.neededBy(g.id.dialect):
				return nil
			case !errors.Is(err, ErrForbidden):
				return err
			}
			load = lacks("script|load")
			if s.Probe != nil {
				return nil // somebody may have loaded it: that is seen next
			}
			return load
		}})
		if s.Probe == nil {
			continue
		}
		gs = append(gs, greeting{append([]string{"EVALSHA", s.SHA1}, s.Probe...), func(v *resp.Value) error {
			if !v.IsError() || ForbidsKey(v.Bytes) {
				return nil
			}
			fatal, err := Refusal(v.Bytes)
			switch {
			case fatal:
				return err
			case load != nil || !s.neededBy(g.id.dialect):
				return load
			case string(v.Code()) == "NOPERM":
				return lacks("evalsha")
			case errors.Is(err, ErrForbidden):
				return err // of a command that the script runs
			}
			return nil // it is loaded, and may be run at another time
		}})
	}
	return gs
}
