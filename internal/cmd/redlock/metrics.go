package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/build"
	"github.com/redlock-go/redlock/internal/server/frontend"
)

// operators shows the process to people and to their tools: /metrics, /ready, and the page at /.
type operators struct {
	page
	client *redlock.Client
	front  *frontend.Server
	name   string // of the process
	began  time.Time
	// leaves reports whether the server was told to end, and reloadFailed whether the last reload has. Both may be nil.
	leaves, reloadFailed func() bool
}

// maxScrapers bounds the connections: files are scarce, and those of the nodes come first.
const maxScrapers = 16

// scrapers holds the connections, in order of their last news. The oldest idle one makes room for a new one, so idle
// connections do not shut probes out.
type scrapers struct {
	mu   sync.Mutex
	open []scraper
}

type scraper struct {
	conn   net.Conn
	isBusy bool // with a request
}

// note is a callback for http.Server.ConnState.
func (s *scrapers) note(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(o scraper) bool { return o.conn == c })
	if state == http.StateClosed || state == http.StateHijacked {
		return
	}
	if len(s.open) >= maxScrapers {
		i := max(0, slices.IndexFunc(s.open, func(o scraper) bool { return !o.isBusy }))
		_ = s.open[i].conn.Close()
		s.open = slices.Delete(s.open, i, i+1)
	}
	s.open = append(s.open, scraper{c, state == http.StateActive})
}

// serve serves operators until stop is called.
func (o *operators) serve(l net.Listener) (stop func() error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", o.show)
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if why := o.notReady(); why != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, why)
			return
		}
		fmt.Fprintln(w, "ready: locks can be acquired")
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		if o.client.Stats().WriteMetrics(w) == nil {
			o.writeOwn(w)
			writeMetrics(w, o.front)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	server.ConnState = new(scrapers).note
	ctx, cancel := context.WithCancel(context.Background())
	go o.watch(ctx, o.client, o.front)
	go server.Serve(l)
	return func() error { cancel(); return server.Close() }
}

// notReady is the reason for clients to go elsewhere, in words, or "".
func (o *operators) notReady() string {
	if o.leaves != nil && o.leaves() {
		return "stopping: the server was told to end"
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := o.client.Ready(ended); err != nil {
		return trimName(errors.New(strings.TrimSuffix(err.Error(), "; "+context.Canceled.Error())))
	}
	return ""
}

// refusals are the reasons for refusing a node until a person has changed something.
var refusals = []error{
	conn.ErrSameServer, conn.ErrSentinel, conn.ErrNotRESP, conn.ErrRefused, conn.ErrUntrusted, conn.ErrRejected, conn.ErrNotTLS,
	conn.ErrAuth, conn.ErrNotMaster, conn.ErrCluster, conn.ErrForbidden, conn.ErrNoRunID, conn.ErrTooOld,
}

// writeOwn writes the facts about the process.
func (o *operators) writeOwn(w io.Writer) {
	b := build.Read()
	isReady, hasFailed := 0, 0
	if o.notReady() == "" {
		isReady = 1
	}
	if o.reloadFailed != nil && o.reloadFailed() {
		hasFailed = 1
	}
	family := func(name, help string) { fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name) }
	family("redlock_build_info", "1, with the version of the server, and its -name.")
	fmt.Fprintf(w, "redlock_build_info{go=%q,name=%q,revision=%q,version=%q} 1\n", runtime.Version(), o.name, b.Commit, b.Version)
	family("redlock_frontend_ready", "1 if /ready says 200: every group has a quorum, and the server was not told to end.")
	fmt.Fprintf(w, "redlock_frontend_ready %d\n", isReady)
	family("redlock_frontend_reload_failed", "1 if the last reload has found a mistake, and has changed nothing.")
	fmt.Fprintf(w, "redlock_frontend_reload_failed %d\n", hasFailed)
	family("redlock_frontend_node_refused", "1 if the node is refused for a reason that only a person can remove: it is not what its URL says, or does not let this client in.")
	for _, n := range o.client.Stats().Nodes {
		isRefused := 0
		if slices.ContainsFunc(refusals, func(err error) bool { return errors.Is(n.NoVote, err) }) {
			isRefused = 1
		}
		fmt.Fprintf(w, "redlock_frontend_node_refused{node=%q,redlock_group=\"%d\"} %d\n", n.Addr, n.Group, isRefused)
	}
	family("process_start_time_seconds", "When the process began, in seconds of Unix time.")
	fmt.Fprintf(w, "process_start_time_seconds %d\n", o.began.Unix())
}

// writeMetrics writes the counts of the front end.
func writeMetrics(w io.Writer, front *frontend.Server) {
	own, wire := front.Stats()
	for _, m := range []struct {
		name, help, kind string
		value            any
	}{
		{"connections", "Connections that are open.", "gauge", wire.Open.Load()},
		{"connections_total", "Connections that were accepted.", "counter", wire.Connections.Load()},
		{"connections_refused_total", "Connections beyond the bound of clients.", "counter", wire.Refused.Load()},
		{"commands_total", "Commands that were received.", "counter", wire.Commands.Load()},
		{"unknown_commands_total", "Commands that the server does not know.", "counter", own.Unknown.Load()},
		{"bad_passwords_total", "Logins that were refused.", "counter", own.BadPassword.Load()},
		{"no_quorum_total", "Replies with the code NOQUORUM.", "counter", own.NoQuorum.Load()},
		{"refused_scripts_total", "Scripts that are no lock's, or that were called so.", "counter", own.RefusedScripts.Load()},
	} {
		name := "redlock_frontend_" + m.name
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %d\n", name, m.help, name, m.kind, name, m.value)
	}
	fmt.Fprintf(w, "# HELP redlock_frontend_scripts_total Calls of scripts, by what they do.\n# TYPE redlock_frontend_scripts_total counter\n")
	own.EachClass(func(class string, calls uint64) {
		fmt.Fprintf(w, "redlock_frontend_scripts_total{class=%q} %d\n", strings.ReplaceAll(class, " ", "_"), calls)
	})
}
