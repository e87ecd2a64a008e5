package metrics

import (
	"io"
	"time"
)

// Results is the root package's Stats.Acquire, Extend and Release.
type Results = struct{ Won, Denied, NoQuorum, Expired, Cancelled, Refused uint64 }

// Stats is the root package's type of that name, by its fields; N is its Node.
type Stats[N any] struct {
	Acquire, Extend, Release Results

	Waits struct {
		Granted, HandedOver, GaveUp, UsedUp, Closed, Failed uint64
		Total, Longest                                      time.Duration
	}
	AcquireTimes, WaitTimes struct {
		Counts [len(Bounds) + 1]uint64
		Sum    time.Duration
	}
	Held, KeptAlive     int
	InLine              int
	Lost, HandedOver    uint64
	Cleanups            uint64
	Batches, Operations uint64
	Waiting, InFlight   int
	Nodes               []N
}

// Node is the root package's type of that name, by its fields.
type Node struct {
	Index, Group              int
	GroupReady                bool
	Addr                      string
	InNodes, InNextNodes      bool
	Up                        bool
	Err                       error
	Server, Dialect, Volatile string
	Connects                  uint64
	RoundTrips                uint64
	RoundTrip, RoundTripMax   time.Duration
	InFlight                  int
	Granted, Denied, Failed   uint64
	Serves                    string
	NoVote                    error
	NoVoteFor                 time.Duration
}

// Write writes s in the text format of Prometheus, version 0.0.4, in one call of w.Write.
func Write[N any](w io.Writer, s Stats[N], node func(N) Node) error {
	t := &text{}
	t.family("redlock_operations_total", "counter", "Attempts to acquire, extensions and releases that have ended, by how they ended.")
	for _, kind := range []struct {
		name string
		Results
	}{{"acquire", s.Acquire}, {"extend", s.Extend}, {"release", s.Release}} {
		for _, r := range []struct {
			name string
			n    uint64
		}{
			{"won", kind.Won}, {"denied", kind.Denied}, {"no_quorum", kind.NoQuorum},
			{"expired", kind.Expired}, {"cancelled", kind.Cancelled}, {"refused", kind.Refused},
		} {
			t.sample(count(r.n), "kind", kind.name, "result", r.name)
		}
	}
	t.histogram("redlock_acquire_duration_seconds", "Time from the call to the verdict, of attempts to acquire one key that the nodes decided.", s.AcquireTimes)
	t.family("redlock_waits_total", "counter", "Calls that waited for a lock after their first attempt, by how the wait ended.")
	for _, r := range []struct {
		name string
		n    uint64
	}{
		{"granted", s.Waits.Granted}, {"handed_over", s.Waits.HandedOver}, {"gave_up", s.Waits.GaveUp},
		{"used_up", s.Waits.UsedUp}, {"closed", s.Waits.Closed}, {"failed", s.Waits.Failed},
	} {
		t.sample(count(r.n), "end", r.name)
	}
	t.histogram("redlock_wait_duration_seconds", "Time that these calls took in all.", s.WaitTimes)
	t.one("redlock_locks_held", "gauge", "Locks with validity left.", gauge(s.Held))
	t.one("redlock_locks_kept_alive", "gauge", "Locks that are extended in the background.", gauge(s.KeptAlive))
	t.one("redlock_locks_lost_total", "counter", "Locks that were lost while they were kept alive.", count(s.Lost))
	t.one("redlock_locks_handed_over_total", "counter", "Locks that passed to the next caller of the process without a release.", count(s.HandedOver))
	t.one("redlock_callers_in_line", "gauge", "Callers that wait for a lock.", gauge(s.InLine))
	t.one("redlock_cleanups_total", "counter", "Releases that followed acquires that failed.", count(s.Cleanups))
	t.one("redlock_batches_total", "counter", "Batches written, each to all nodes.", count(s.Batches))
	t.one("redlock_batch_operations_total", "counter", "Operations in these batches.", count(s.Operations))
	t.one("redlock_operations_waiting", "gauge", "Operations that are queued in the process.", gauge(s.Waiting))
	t.one("redlock_operations_in_flight", "gauge", "Operations sent and without a verdict.", gauge(s.InFlight))
	t.family("redlock_ready", "gauge", "1 if a quorum of the group's nodes is up and may vote: locks can be acquired.")
	nodes := make([]Node, len(s.Nodes))
	for i, n := range s.Nodes {
		nodes[i] = node(n)
		if i == 0 || nodes[i].Group != nodes[i-1].Group {
			t.sample(gauge(b2i(nodes[i].GroupReady)), groupLabel, gauge(nodes[i].Group))
		}
	}
	t.nodes(nodes)
	_, err := w.Write(t.b)
	return err
}
