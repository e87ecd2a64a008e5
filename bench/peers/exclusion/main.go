//go:build linux

// Command exclusion checks what shared and exclusive locks promise, on five real masters that are killed, stopped and cut
// off: no reader beside a writer, no two writers. Processes of this library and one of redsync, a writer that knows nothing
// of shared locks, want the same few keys. A judge compares the times at which each has seen its lock held.
//
//	go run ./exclusion -d 12m             # masters that forget nothing, and redsync
//	go run ./exclusion -d 12m -forgetful  # masters that lose all with each death, and a quarantine instead; no redsync
//	go run ./exclusion -d 20s -broken writer
//
// It ends with status 1 if two held a key at once, or if a key is left in the end. With -broken one process ignores readers
// (writer) or writers (reader), which must be found.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

const (
	masters = 5
	keys    = 4
	ttl     = 2 * time.Second // the longest, and MaxTTL
)

func main() {
	child.Serve(userEnv, serve)
	d := flag.Duration("d", time.Minute, "how long")
	ours := flag.Int("processes", 4, "processes of this library")
	forgetful := flag.Bool("forgetful", false, "masters keep nothing on disk; a quarantine instead, and no redsync")
	broken := flag.String("broken", "", "a process that ignores readers (writer) or writers (reader)")
	calm := flag.Bool("calm", false, "no faults")
	flag.Parse()
	t := &trial{forgetful: *forgetful, judge: newJudge(), faults: map[string]int{}}
	err := t.run(*d, *ours, *broken, !*calm)
	fmt.Print(t.report())
	if err != nil {
		log.Fatal(err)
	}
}

// trial is the masters, the processes that use them, and what is done to both.
type trial struct {
	forgetful bool
	fleet     *realredis.Fleet
	users     []*user
	judge     *judge
	faults    map[string]int
	left      []string // keys that are there in the end
}

func (t *trial) run(d time.Duration, ours int, broken string, withFaults bool) (err error) {
	t.fleet, err = realredis.Launch(masters, realredis.Options{Persistent: !t.forgetful})
	if err != nil {
		return err
	}
	defer t.fleet.Close()
	defer func() { // on every path: nothing is left behind
		for _, u := range t.users {
			u.end()
		}
	}()
	kinds := make([]string, ours, ours+2)
	for i := range kinds {
		kinds[i] = byOurs
	}
	if !t.forgetful {
		kinds = append(kinds, byRedsync)
	}
	if broken != "" {
		kinds = append(kinds, brokenPrefix+broken)
	}
	for _, kind := range kinds {
		if err := t.start(kind); err != nil {
			return err
		}
	}
	// Faults of a majority at the very start may outlast a short trial.
	for begun := time.Now(); !t.judge.hasBegun() && time.Since(begun) < 10*time.Second; {
		time.Sleep(5 * time.Millisecond)
	}
	end, said := time.Now().Add(d), time.Now()
	for err == nil && time.Now().Before(end) {
		if withFaults {
			err = t.fault()
		}
		sleep(500*time.Millisecond, 2*time.Second)
		if time.Since(said) > 30*time.Second {
			said = time.Now()
			log.Printf("%v left; %d holds", time.Until(end).Round(time.Second), t.judge.holds())
		}
	}
	for _, u := range t.users {
		u.end()
	}
	return errors.Join(err, t.judge.verdict(), t.awaitEmpty())
}

// isPlace reports whether a key is of a queue.
func isPlace(key string) bool {
	return strings.HasSuffix(key, ":redlock:queue") || strings.Contains(key, ":redlock:ticket:")
}

// awaitEmpty waits until no master has a key: locks end with their TTL, and so do gates. The place of a process that was
// killed, or cut off as it left, delays no other, and stays for a minute.
func (t *trial) awaitEmpty() error {
	for deadline := time.Now().Add(5 * ttl); ; time.Sleep(100 * time.Millisecond) {
		t.left = nil
		for _, s := range t.fleet.Servers {
			names, err := ask(s.Addr(), "KEYS", "*")
			if err != nil {
				return err
			}
			t.left = append(t.left, slices.DeleteFunc(names, isPlace)...)
		}
		if len(t.left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("keys are left: %v", t.left)
		}
	}
}

func (t *trial) start(kind string) error {
	u, err := startUser(kind, t.nodes(), t.judge)
	if err == nil {
		t.users = append(t.users, u)
	}
	return err
}

// nodes are the masters as this library is told of them.
func (t *trial) nodes() (nodes []string) {
	for _, address := range t.fleet.Addrs() {
		if !t.forgetful {
			address = "redis://" + address + "?persistent=yes"
		}
		nodes = append(nodes, address)
	}
	return nodes
}

func (t *trial) report() string {
	how := "appendonly yes, appendfsync always"
	if t.forgetful {
		how = "nothing on disk, quarantine"
	}
	return fmt.Sprintf("%d masters (%s), faults: %v\n%v", masters, how, t.faults, t.judge)
}
