// Package conntest has Redis masters inside the process, for tests of programs that use locks:
//
//	masters := conntest.Start(t, 3)
//	client, err := redlock.New(redlock.Config{Nodes: masters.Addrs()})
//	...
//	masters.Stop(0)
//	masters.Stop(1) // and now too few answer
//
// The masters listen on free ports of 127.0.0.1, keep keys with their TTLs, and can be stopped and hung, to show what
// the program does without a quorum. They know the commands and scripts of package redlock and few others. With
// NodeTimeout: 2 * time.Second no attempt fails on a busy machine, and where masters hang the program meets ErrNoQuorum
// after so long: a shorter Options.Wait, or deadline, ends before. service_test.go is a whole test of a service.
//
// What this package promises: the masters answer package redlock as real servers do, and a program without this
// import does not compile them.
package conntest

import (
	"slices"
	"testing"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// Masters are independent masters, numbered from 0. They are safe for concurrent use.
type Masters struct {
	t       testing.TB
	servers []*fakeredis.Server
}

// Start starts n masters. They end with the test.
func Start(t testing.TB, n int) *Masters {
	t.Helper()
	return &Masters{t, fakeredis.StartN(t, n)}
}

// Addrs returns the addresses, for Config.Nodes.
func (m *Masters) Addrs() []string { return fakeredis.Addrs(m.servers) }

// Stop closes the connections of a master and refuses new ones.
func (m *Masters) Stop(i int) { m.servers[i].Down() }

// Hang freezes a master, like a paused process: it accepts connections and answers nothing.
func (m *Masters) Hang(i int) { m.servers[i].Hang() }

// Resume ends Stop and Hang. The keys are as they were, and the commands received during Hang are executed.
func (m *Masters) Resume(i int) {
	m.t.Helper()
	m.check(i, m.servers[i].Heal())
}

// Restart starts a master anew, without its keys, and ends Stop and Hang. Clients regard it as a
// master that may have forgotten locks: see MaxTTL in redlock.Config.
func (m *Masters) Restart(i int) {
	m.t.Helper()
	m.check(i, m.servers[i].Restart(true))
}

func (m *Masters) check(i int, err error) {
	m.t.Helper()
	if err != nil {
		m.t.Errorf("conntest: master %d does not listen: %v", i, err)
	}
}

// Keys returns the keys of a master, but expired ones, sorted.
func (m *Masters) Keys(i int) []string { return slices.Sorted(slices.Values(m.servers[i].Keys())) }

// Delete deletes keys of a master, as an operator may do by hand.
func (m *Masters) Delete(i int, keys ...string) { m.servers[i].Del(keys...) }
