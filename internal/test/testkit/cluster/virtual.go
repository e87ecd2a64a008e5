package cluster

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// worlds has the world of each test in virtual time, by its testing.TB.
var worlds sync.Map

// Virtually runs a test in virtual time. Its masters and clients are on a network in memory. Such a
// test may not call t.Run.
func Virtually(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		worlds.Store(t, virtual.New(t, 1, 0))
		t.Cleanup(func() {
			worlds.Delete(t)
			time.Sleep(time.Minute) // slow user code may return
		})
		test(t)
	})
}

// On is Virtually with n masters and a client, made by New.
func On(t *testing.T, n int, test func(t *testing.T, r *Cluster), change ...func(*redlock.Config)) {
	t.Helper()
	Virtually(t, func(t *testing.T) { test(t, New(t, n, change...)) })
}

// Run runs a subtest in virtual time.
func Run(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { Virtually(t, test) })
}

// world is that of a test in virtual time, or nil.
func world(t testing.TB) *virtual.World {
	w, _ := worlds.Load(t)
	found, _ := w.(*virtual.World)
	return found
}

// NewMachine makes a machine for clients, in virtual time.
func NewMachine(t testing.TB) *virtual.Machine { return world(t).Machine() }
