// Package result has the results of a benchmark, in the one form in which they are
// written, read and shown.
//
// A file of results has one JSON object a line. A [Head] describes a run: what is measured, on
// what and how. A [Result] is one driver in one cell in one round. What follows a head
// belongs to it, so files can be concatenated: their results are then more rounds.
package result

import "time"

// Line is one line of a file: exactly one of its fields is set.
type Line struct {
	Head   *Head   `json:"run,omitempty"`
	Result *Result `json:"result,omitempty"`
	Failed string  `json:"failed,omitempty"` // why a run was not completed
}

// Head describes a run, or one section of a suite.
type Head struct {
	Section string    `json:"section,omitempty"`
	Title   string    `json:"title,omitempty"`
	Args    string    `json:"args,omitempty"`  // of the section
	Shows   []string  `json:"shows,omitempty"` // measures, each a table of the summary
	Machine string    `json:"machine"`
	Place   string    `json:"place,omitempty"`             // who has which processors
	Own     int       `json:"server_processors,omitempty"` // that the servers have for themselves
	Commit  string    `json:"commit"`
	Date    time.Time `json:"date"`
	Method  string    `json:"method"`
	Rounds  int       `json:"rounds"`
	Drivers []string  `json:"drivers,omitempty"`
	Servers []Server  `json:"servers"`
	Notes   []string  `json:"notes,omitempty"` // what a reader has to know
}

// Server is a node as it was found before anything was measured.
type Server struct {
	Addr string `json:"addr"`
	What string `json:"what,omitempty"`
	Down string `json:"down,omitempty"` // why nothing is known of it
}

// Scenario is the way in which the workers of a cell share keys, or what there is much of.
type Scenario string

// The scenarios of much.
const (
	Held Scenario = "held"
	Kept Scenario = "kept"
	Idle Scenario = "idle"
)

// OfMany reports whether it is one of these.
func (s Scenario) OfMany() bool { return s == Held || s == Kept || s == Idle }

// Fault is the fault of the first node while a cell is counted. It is the
// first because a client that asks its nodes in order then meets it first.
type Fault string

// The faults.
const (
	NoFault Fault = "none"
	// Slow answers 20 ms late, always.
	Slow Fault = "slow"
	// Hung is a stopped process (SIGSTOP): its kernel accepts connections and bytes, and
	// there is no answer.
	Hung Fault = "hung"
	// Refusing has lost all connections, and refuses new ones.
	Refusing Fault = "refusing"
	// BlackHole receives everything and answers nothing, a connect included.
	BlackHole Fault = "blackhole"
	// Restarting dies and is back, empty, at once, every five seconds.
	Restarting Fault = "restarting"
	// KillWaiter and KillHolder are faults of the clients of a contended cell: again and
	// again the process at the head of the queue, or the one that holds the lock, is killed
	// and replaced by another.
	KillWaiter Fault = "kill-waiter"
	KillHolder Fault = "kill-holder"
	// Any is all kinds by chance, one after another: up to three nodes are killed, stopped or cut off, or a client is
	// stopped or killed.
	Any Fault = "any"
)

// OfClients reports whether it is a fault of clients, also.
func (f Fault) OfClients() bool { return f == KillWaiter || f == KillHolder || f == Any }

// Cell is one load on one kind of network.
type Cell struct {
	Scenario    Scenario      `json:"scenario"`
	Concurrency int           `json:"concurrency"`
	Nodes       int           `json:"nodes"`
	RTT         time.Duration `json:"rtt_ns,omitempty"` // added to every node
	Jitter      time.Duration `json:"jitter_ns,omitempty"`
	Fault       Fault         `json:"fault"` // of the first node
	KeyLen      int           `json:"key_bytes"`
	Procs       int           `json:"gomaxprocs,omitempty"` // 0 is as it was found
	Hold        time.Duration `json:"hold_ns,omitempty"`    // work under the lock

	Clients int `json:"clients,omitempty"` // of this library, which share the workers

	// Of uncontended cells only: how many pairs are begun in a second, by chance; 0: each worker
	// begins the next at once.
	Rate int `json:"rate,omitempty"`

	// Of contended cells only. Concurrency is that of each process.
	Processes int           `json:"processes,omitempty"`
	Keys      int           `json:"keys,omitempty"`
	Once      bool          `json:"once,omitempty"` // one turn for each goroutine
	TTL       time.Duration `json:"ttl_ns,omitempty"`
	// Crowd is what the processes of the row want, and Beside what others want at the same time: 2x64:read:20ms.
	Crowd  string `json:"crowd,omitempty"`
	Beside string `json:"beside,omitempty"`
}

// Result is one driver in one cell in one round.
type Result struct {
	Driver string `json:"driver"`
	// Weaker is the promise of a driver that promises less than a lock on a majority.
	Weaker string `json:"weaker,omitempty"`
	Cell
	Round int `json:"round"`
	// Error is why there are no figures. Lacks is set if the driver cannot run such a cell.
	Error string `json:"error,omitempty"`
	Lacks bool   `json:"lacks,omitempty"`
	// Unsafe is set if two held the same key at once.
	Unsafe bool `json:"unsafe,omitempty"`
	Figures
	FirstError string `json:"first_error,omitempty"` // of those that are counted
}

// Figures are the numbers of a result, all of one type, so that each has its
// median over the rounds, its lowest and its highest.
type Figures struct {
	Seconds       float64 `json:"seconds"`
	Pairs         float64 `json:"pairs"`
	PairsPerSec   float64 `json:"pairs_per_sec"`
	P50           float64 `json:"p50_us"`
	P99           float64 `json:"p99_us"`
	P999          float64 `json:"p999_us"`
	Max           float64 `json:"max_us"`
	AllocsPerPair float64 `json:"allocs_per_pair"`
	CPUPerPair    float64 `json:"client_cpu_us_per_pair"`
	ServerCPU     float64 `json:"server_cpu_us_per_pair,omitempty"` // of all nodes
	TriesPerPair  float64 `json:"tries_per_pair"`
	Errors        float64 `json:"errors"`
	// Others is the share of the processors that other programs have used; 0 where that is not known.
	Others float64 `json:"others_share,omitempty"`
	// Goroutines is all of the process at the end of the window, the harness's included.
	Goroutines float64 `json:"goroutines"`

	// Of the two halves of a pair. With more than 64 workers one pair in several is timed.
	AcquireP50 float64 `json:"acquire_p50_us,omitempty"`
	AcquireP99 float64 `json:"acquire_p99_us,omitempty"`
	ReleaseP50 float64 `json:"release_p50_us,omitempty"`
	ReleaseP99 float64 `json:"release_p99_us,omitempty"`

	// A PING on an idle connection, along the path of the clients: the round trip of the
	// network alone. It is the same for all drivers.
	PingP50 float64 `json:"ping_p50_us,omitempty"`
	PingP99 float64 `json:"ping_p99_us,omitempty"`
	// What the client has added to that: see [Figures.Above].
	Added float64 `json:"added_us,omitempty"`

	// The cost of a fault at the end of the window, and its growth since before the fault.
	GoroutineGrowth  float64 `json:"goroutines_growth,omitempty"`
	Descriptors      float64 `json:"descriptors,omitempty"`
	DescriptorGrowth float64 `json:"descriptors_growth,omitempty"`
	MemoryMiB        float64 `json:"memory_mib,omitempty"` // heap in use, and stacks
	MemoryGrowthMiB  float64 `json:"memory_growth_mib,omitempty"`

	// Of contended cells only, where a pair is a grant, and its latency that of the wait.
	// Max includes waits that the end of the window has cut.
	IdealShare float64 `json:"ideal_share,omitempty"` // grants × hold / time
	MaxOfFair  float64 `json:"max_of_fair,omitempty"` // Max over workers × time / grants
	// The least and the most of a worker and of a process, as parts of a fair share.
	WorkerLeast  float64 `json:"worker_least,omitempty"`
	WorkerMost   float64 `json:"worker_most,omitempty"`
	WorkerMean   float64 `json:"worker_mean_grants,omitempty"`
	ProcessLeast float64 `json:"process_least,omitempty"`
	ProcessMost  float64 `json:"process_most,omitempty"`
	// From a release to the next grant of the key, if its new holder waited: in all, and
	// between processes.
	HandoffP50 float64 `json:"handoff_p50_us,omitempty"`
	HandoffP99 float64 `json:"handoff_p99_us,omitempty"`
	HandoffMax float64 `json:"handoff_max_us,omitempty"`
	CrossP50   float64 `json:"cross_p50_us,omitempty"`
	CrossP99   float64 `json:"cross_p99_us,omitempty"`
	CrossShare float64 `json:"cross_share,omitempty"` // of all hand-offs
	// Commands that all nodes have executed, those in scripts included.
	CommandsPerPair float64 `json:"commands_per_pair,omitempty"`
	// Processes that were killed, and the time from the end of a killed holder's TTL to the
	// next grant.
	Kills     float64 `json:"kills,omitempty"`
	Faults    float64 `json:"faults,omitempty"` // of [Any]
	OrphanP50 float64 `json:"orphan_p50_us,omitempty"`
	OrphanMax float64 `json:"orphan_max_us,omitempty"`

	// FocusShare is the share of the client's CPU in the functions that were asked for.
	FocusShare float64 `json:"focus_share,omitempty"`

	// Of scenarios of much: what one lock holds, or an idle client, and its CPU in a second.
	BytesEach       float64 `json:"bytes_each,omitempty"`
	GoroutinesEach  float64 `json:"goroutines_each,omitempty"`
	DescriptorsEach float64 `json:"descriptors_each,omitempty"`
	IdleCPU         float64 `json:"idle_cpu_us_per_sec,omitempty"`
}

// Above is what a client has added to the round trip of the network: AcquireP50 less PingP50, where there are both.
func (f *Figures) Above() float64 {
	if f.AcquireP50 == 0 || f.PingP50 == 0 {
		return 0
	}
	return f.AcquireP50 - f.PingP50
}
