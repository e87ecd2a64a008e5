package fakeredis

// TB is StartN's part of a *testing.T or *testing.B: programs with an embedded server need not
// import package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// StartN starts n servers for a test and closes them when it ends. Each gets
// the options at its index, or the last ones given.
func StartN(t TB, n int, opts ...Options) Servers {
	t.Helper()
	if len(opts) == 0 {
		opts = []Options{{}}
	}
	servers := make(Servers, n)
	for i := range servers {
		s, err := Start(opts[min(i, len(opts)-1)])
		if err != nil {
			t.Fatalf("fakeredis: %v", err)
		}
		t.Cleanup(func() { _ = s.Close() })
		servers[i] = s
	}
	return servers
}

// Addrs lists the addresses of servers.
func Addrs(servers []*Server) []string {
	addrs := make([]string, len(servers))
	for i, s := range servers {
		addrs[i] = s.Addr()
	}
	return addrs
}
