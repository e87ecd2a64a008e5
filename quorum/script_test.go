package quorum_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/quorum"
)

// TestScripts plays the rounds in testdata/*.txt. A line is a command and what
// it must answer:
//
//	nodes 5 [-> VERDICT]            start a round (pending unless it says else)
//	vote NODE OUTCOME -> VERDICT    record a vote
//	outcome NODE -> OUTCOME         "none" when there is no vote
//	reason -> REASON                "none" when the round is not lost
//	counts granted=N denied=N failed=N waiting=N
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) < 4 {
		t.Fatalf("want the scripts of testdata, have %v (%v)", paths, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var tally quorum.Tally
			for i, line := range strings.Split(string(text), "\n") {
				line = strings.TrimSpace(line)
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				if err := play(&tally, line); err != nil {
					t.Errorf("%s:%d: %s: %v", path, i+1, line, err)
				}
			}
		})
	}
}

// TestScriptsCanFail: a player that accepts anything would prove nothing.
func TestScriptsCanFail(t *testing.T) {
	for _, line := range []string{
		"nodes 3 -> won",
		"nodes",
		"vote 0 granted -> won",
		"vote 0 granted",
		"vote 0 perhaps -> pending",
		"outcome 0 -> granted",
		"reason -> conflict",
		"counts granted=1 denied=0 failed=0 waiting=2",
		"counts granted=0",
		"abstain 0",
	} {
		var tally quorum.Tally
		tally.Reset(3)
		if play(&tally, line) == nil {
			t.Errorf("%q passed", line)
		}
	}
}

// play runs one line against a tally.
func play(tally *quorum.Tally, line string) error {
	command, want, _ := strings.Cut(line, "->")
	want = strings.TrimSpace(want)
	words := strings.Fields(command)
	name, args := words[0], words[1:]

	var got string
	switch {
	case name == "nodes" && len(args) == 1:
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		if want == "" {
			want = "pending"
		}
		tally.Reset(n)
		got = tally.Verdict().String()
	case name == "vote" && len(args) == 2:
		node, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		outcome, err := parseOutcome(args[1])
		if err != nil {
			return err
		}
		got = tally.Record(node, outcome).String()
		if again := tally.Verdict().String(); again != got {
			return fmt.Errorf("Record said %s, Verdict says %s", got, again)
		}
	case name == "outcome" && len(args) == 1:
		node, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		got = "none"
		if outcome, voted := tally.Outcome(node); voted {
			got = outcome.String()
		}
	case name == "reason" && len(args) == 0:
		got = "none"
		if tally.Verdict() == quorum.Lost {
			got = tally.Reason().String()
		} else if tally.Reason() != 0 {
			got = "a reason without a loss: " + tally.Reason().String()
		}
	case name == "counts":
		want = strings.Join(args, " ")
		got = fmt.Sprintf("granted=%d denied=%d failed=%d waiting=%d",
			tally.Granted(), tally.Denied(), tally.Failed(), tally.Waiting())
	default:
		return fmt.Errorf("no such command")
	}
	if got != want {
		return fmt.Errorf("got %q", got)
	}
	return nil
}

// parseOutcome reads an outcome by name, or by number for one that is none.
func parseOutcome(word string) (quorum.Outcome, error) {
	for _, o := range outcomes {
		if o.String() == word {
			return o, nil
		}
	}
	n, err := strconv.ParseUint(word, 10, 8)
	return quorum.Outcome(n), err
}
