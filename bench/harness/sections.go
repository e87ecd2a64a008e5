package harness

// Sections are those of every program: its drivers side by side. They take about two seconds
// for each driver, cell and round.
func Sections(far, unwell string) []Section {
	return []Section{
		{"throughput", "Throughput and latency", "-scenario uncontended -c 1,8,64,512,2048",
			[]string{"core", "added", "pair", "pairs"}},
		{"contended", "Processes that want the same key", "-scenario contended -c 16 -procs 1,4 -hold 1ms",
			[]string{"cpu", "ideal", "pair", "process", "cross", "commands"}},
		{"distance", "Processes of one caller that want the same key, over a round trip", "-scenario contended -c 1 -procs 2,4,8 -hold 1ms -rtt 1ms",
			[]string{"pairs", "trips", "process", "cpu", "commands"}},
		{"nodes", "Number of nodes", "-scenario uncontended -n 1,3,5,7,9 -c 64",
			[]string{"core", "pairs"}},
		{"network", "Longer round trips, every node's with its own jitter", "-scenario uncontended -rtt 200us,1ms,10ms -jitter 100us -c " + far,
			[]string{"pairs", "floor", "acquire", "ping", "release", "cpu"}},
		{"faults", "One faulty node", "-scenario uncontended -fault none,slow,hung,refusing,blackhole -c " + unwell,
			[]string{"pairs", "p50", "p99", "p999", "goroutines", "descriptors", "heap"}},
	}
}

// OwnSections are about our own client alone: how its cost grows, and what
// servers with a compare-and-delete of their own make of it.
func OwnSections() []Section {
	return []Section{
		{"keys", "Length of keys", "-scenario uncontended -keylen 8,24,64,256,1024 -c 64",
			[]string{"cpu", "p50", "pairs"}},
		{"procs", "GOMAXPROCS", "-scenario uncontended -gomaxprocs 1,2,4,8,16 -c 64",
			[]string{"pairs", "p50", "p99", "cpu"}},
		{"submit", "Without a goroutine for each lock", "-driver redlock,redlock-submit,floor,floor-goroutines -scenario uncontended -c 1,64,512,2048",
			[]string{"core", "pair", "pairs"}},
		{"waiters", "Callers that wait for one key", "-driver redlock,redlock-nohandover -scenario contended -c 16,128,1024 -hold 100us",
			[]string{"cpu", "pairs", "p99", "fair", "goroutine", "commands"}},
		{"groups", "Groups of three masters", "-driver redlock-groups -scenario uncontended -n 3,6,9,12 -c 512",
			[]string{"cpu", "p99", "pairs", "servers"}},
		{"idle", "Idle clients", "-driver redlock -scenario idle -c 100",
			[]string{"each", "idle"}},
		{"held", "Locks held at once", "-driver redlock -scenario held -c 100000,1000000 -ttl 1h -rounds 1",
			[]string{"each", "pairs", "cpu"}},
		{"kept", "Locks kept alive: a pair is an extension", "-driver redlock -scenario kept -c 1000,10000,100000 -ttl 30s -rounds 1",
			[]string{"each", "cpu"}},
		{"clients", "Several clients in one process", "-driver redlock -scenario uncontended -c 512 -clients 1,2,4,8",
			[]string{"pairs", "pair", "cpu"}},
		{"lock", "Client CPU under the driver lock", "-driver redlock -scenario uncontended -c 64,512,2048 -d 5s -rounds 1 -focus " + locked,
			[]string{"cpu", "focus"}},
		{"valkey9", "Native commands and scripts on Valkey 9", "-server valkey9 " + native,
			[]string{"pairs", "p50", "p99", "cpu", "release"}},
		{"redis8", "Native commands and scripts on Redis 8", "-server redis8 " + native,
			[]string{"pairs", "p50", "p99", "cpu", "release"}},
	}
}

// locked matches what runs with the driver lock: the turns of the reader, of a submitter and of the watchdog. The reader gives the
// lock up while callers run, but then they have stacks of their own.
const locked = `engine\.\(\*driver\)\.(receive|turnOf|tick)$`

// native compares our client with its twin that uses scripts only.
const native = "-driver redlock,redlock-scripted,floor -scenario uncontended -c 1,64,512"
