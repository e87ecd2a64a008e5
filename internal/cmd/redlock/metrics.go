package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/frontend"
)

// serveMetrics shows the counts of a front end and its client at /metrics, and the page for
// operators at /, until stop is called.
func serveMetrics(l net.Listener, front *frontend.Server, client *redlock.Client, p *page) (stop func() error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, client) })
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		if client.Stats().WriteMetrics(w) == nil {
			writeMetrics(w, front)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second}
	ctx, cancel := context.WithCancel(context.Background())
	go p.watch(ctx, client, front)
	go server.Serve(l)
	return func() error { cancel(); return server.Close() }
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
