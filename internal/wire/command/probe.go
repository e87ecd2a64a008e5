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

// Probe finds, on a new connection, the forms understood by a node. It also runs the scripts needed, so the node knows
// them. The key of the probes is absent, so they change nothing. Probe calls ask for each command, and answer reads the
// reply. All replies are read in order, and after an error the node cannot be used. The answers show the form. With
// scripted, native commands are not tried. fence is nil if the scripts of package fencing are not needed.
func Probe(scripted bool, fence *Fence, ask func(answer func(*resp.Value) error, words ...string)) (form func() uint16) {
	var found Form
	// native tries a native release command. The first to work is used. A refused key shows that it works, too: access
	// is checked only for existing commands, and locks have other keys.
	native := func(by Form, words ...string) {
		ask(func(v *resp.Value) error {
			refused := refusal.Read(v)
			if (v.Kind == resp.Integer || refused.OfKey) && found&releases == 0 {
				found |= by
			}
			if !v.IsError() && v.Kind != resp.Integer {
				return refusal.ErrUnfit
			}
			return refused.Fatality()
		}, words...)
	}
	// call tries a script. The user may have no permission to call it this way, or to run a command in it. The probes
	// before have shown whether the node needs it.
	call := func(k Kind, words ...string) {
		ask(func(v *resp.Value) error {
			switch refused := refusal.Read(v); {
			case !v.IsError(), refused.OfKey:
			case refused.Fatal, refused.Code == "LOADING": // INFO and HELLO are answered then
				return refused.Err
			case !found.IsScript(k):
			case refused.Unscripted:
				return fmt.Errorf("%w: %w", refusal.ErrUnscripted, refused.Err)
			case refused.Code == "NOPERM":
				return refusal.Lacks(strings.ToLower(words[0]))
			case refused.Lacks, refused.Stays(): // a command in the script; or the server cannot compile it
				return refused.Err
			}
			return nil // it may be run at another time
		}, words...)
	}
	if !scripted {
		native(DelIfEq, "DELIFEQ", probeKey, probeToken)
		native(DelEx, "DELEX", probeKey, "IFEQ", probeToken)
	}
	call(Release, "EVAL", ReleaseScript, "1", probeKey, probeToken)
	call(Extend, "EVAL", ExtendScript, "1", probeKey, probeToken, "1000")
	call(Extend, "EVALSHA", ExtendSHA1, "1", probeKey, probeToken, "1000")
	if fence != nil { // without lock keys: a node that forbids these scripts cannot be used
		found |= Fenced // so that they count as needed
		call(Acquire, "EVAL", fencing.AcquireScript, "1", fence.Set, probeToken, "0")
		call(Extend, "EVAL", fencing.ExtendScript, "1", fence.Set, probeToken)
		call(Acquire, "EVAL", fencing.MemberScript, "1", fence.Set, "read", probeToken)
	}
	return func() uint16 { return uint16(found) }
}
