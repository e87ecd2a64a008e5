package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// inside is a struct of a user: package fmt calls no methods of its field.
type inside[T any] struct{ v T }

// nested has T in all ways that package fmt follows.
type nested[T any] struct {
	v, at, in, deep, list, keyed any
	own                          inside[inside[T]]
}

// forms is the value at p, as users may print it.
func forms[T any](p *T) []any {
	in := inside[T]{*p}
	n := nested[T]{*p, p, in, &in, []T{*p}, map[int]T{1: *p}, inside[inside[T]]{in}}
	return []any{*p, p, in, &in, n, &n}
}

// publicTypes is the exported types of a package, by its directory below the module's.
func publicTypes(t *testing.T, dir string) (names []string) {
	files := testkit.Must(filepath.Glob(filepath.Join("../../..", dir, "*.go")))(t)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f := testkit.Must(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				require.False(t, spec.Assign.IsValid(), "%s: the documentation of an alias lacks its fields", spec.Name)
				names = append(names, f.Name.Name+"."+spec.Name.Name)
			}
			_, isFunc := n.(*ast.FuncDecl)
			return !isFunc
		})
	}
	return names
}

// TestNoTypeShowsASecret: a value of each public type, where there are passwords and tokens, printed with every verb and
// logged, also from within structs of users. A Config in a field of these has its logins as functions: strings show. Other
// Configs show none of a URL. The rest of a Config is shown, and a Lock by its digest.
func TestNoTypeShowsASecret(t *testing.T) {
	servers := fakeredis.Servers(fakeredis.StartN(t, 3, fakeredis.Options{Password: password}))
	nodes := withPassword(servers, "")
	cfg := redlock.Config{
		Nodes: fakeredis.Addrs(servers), Name: "worker", Logger: slog.New(slog.DiscardHandler),
		Credentials: func(context.Context, string) (string, string, error) { return "", password, nil },
		TLSFor:      func(string) *tls.Config { return &tls.Config{ServerName: password} },
	}
	c := cluster.Connect(t, nodes, func(c *redlock.Config) { c.Name = cfg.Name })
	own := "another's token"
	servers.Each(func(s *fakeredis.Server) { s.Set("foreign", own, ttl) })
	attached := testkit.Must(c.Attach(t.Context(), "foreign", own, time.Now().Add(ttl)))(t)
	l := cluster.MustAcquire(t, c, "k", ttl)
	set := testkit.Must(c.AcquireAll(t.Context(), ttl, "a", "b"))(t)
	state := testkit.Must(c.Inspect(t.Context(), "k"))(t)
	kept, stop := l.KeepAlive(t.Context())
	op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("op"), TTL: ttl}
	require.NoError(t, cluster.Submit(t, c, op))
	addresses := testkit.Must(conn.ParseAddresses(nodes))(t)
	stats := c.Stats()
	secrets := append([]string{own, l.Token()[:22], set.Token()[:22], op.Token()[:22]}, secrets...)
	stop()
	require.NoError(t, c.Close()) // or printing it would be a race
	_, refused := redlock.New(redlock.Config{Nodes: withPassword(servers, "stranger"), Logger: cfg.Logger})
	var failure *conn.Error
	require.ErrorAs(t, refused, &failure)

	type exported struct{ Locks redlock.Config }
	logins := redlock.Config{Nodes: nodes, Name: "worker", TLS: &tls.Config{ServerName: password}}
	malformed := redlock.Config{Nodes: []string{"redis://:sesame zzyzx"}}
	var seen testkit.LogSink // package fmt asks none of these for %p
	seen.Add(logins, &logins, []redlock.Config{logins}, map[int]redlock.Config{1: logins}, exported{logins}, &exported{logins}, malformed)
	seen.RequireNone(t, secrets...)
	for _, text := range []string{fmt.Sprintf("%+v", logins), fmt.Sprintf("%#v", &logins)} {
		require.Contains(t, text, servers[0].Addr())
		require.Regexp(t, `Name:"?worker`, text)
	}
	require.Regexp(t, `^lock "k", 4m\S+ left, token digest [0-9a-f]{8}$`, fmt.Sprint(l))
	require.Equal(t, `lock "", 0s left, token digest `, fmt.Sprint(redlock.Lock{}))
	same := new(redlock.Op)
	same.SetToken(l.Token())
	require.Contains(t, fmt.Sprint(same), strings.Fields(fmt.Sprint(l))[6], "the same digest: the same lock")
	require.Equal(t, strconv.Quote(failure.Error()), string(testkit.Must(json.Marshal(failure))(t)), "a Node in JSON shows why it is down")

	all := map[string][]any{
		"redlock.Config": slices.Concat(forms(&cfg), []any{refused}), "redlock.Options": forms(&redlock.Options{Name: "order-7"}),
		"redlock.Client": forms(c), "redlock.Lock": slices.Concat(forms(&l), forms(&attached), forms(&set), forms(new(redlock.Lock))),
		"redlock.Op": slices.Concat(forms(op), forms(new(redlock.Op))), "redlock.KeyState": forms(&state), "redlock.KeyOnNode": forms(&state.Nodes[0]),
		"redlock.Attempt": forms(&redlock.Attempt{Ctx: kept}), "redlock.Acquisition": forms(&redlock.Acquisition{Ctx: kept}),
		"redlock.Stats": forms(&stats), "redlock.Node": forms(&stats.Nodes[0]), "redlock.Vote": forms(&redlock.Vote{Err: failure}),
		"redlock.AcquireError": forms(&redlock.AcquireError{Last: failure}), "redlock.LostError": forms(&redlock.LostError{Cause: failure}),
		"redlock.QuorumError": forms(&redlock.QuorumError{Cause: failure}), "redlock.NodeError": forms(&redlock.NodeError{Err: failure}),
		"redlock.Retry": forms(&cfg.Retry), "redlock.Hooks": forms(&cfg.Hooks), "redlock.OpKind": forms(&op.Kind),
		"redlock.Outcome": forms(new(redlock.Outcome)), "redlock.KeyStatus": forms(&state.Status),
		"conn.Address": forms(&addresses[0]), "conn.Error": forms(failure), "conn.Config": forms(&conn.Config{Addresses: addresses, Credentials: cfg.Credentials}),
		"conn.Fleet": forms(new(*conn.Fleet)), "conn.Nodes": forms(new(*conn.Nodes)), "conn.Server": forms(new(conn.Server)), "conn.Node": forms(new(conn.Node)),
		"conn.History": forms(new(conn.History)), "conn.Form": forms(new(conn.Form)), "conn.Owner": forms(new(conn.Owner)),
		"conn.Batch": forms(new(*conn.Batch)), "conn.Reply": forms(new(conn.Reply)), // the bytes are their caller's
		"quorum.Config": forms(quorum.Majority(7)), "quorum.Outcome": forms(new(quorum.Outcome)), "quorum.Set": forms(new(quorum.Set)),
		"quorum.SharedSet": forms(new(quorum.SharedSet)), "quorum.Tally": forms(new(quorum.Tally)), "quorum.Verdict": forms(new(quorum.Verdict)),
		// What these have is all their caller's: the bytes of a reply.
		"resp.Decoder": forms(new(resp.Decoder)), "resp.Elements": forms(new(resp.Elements)), "resp.Kind": forms(new(resp.Kind)),
		"resp.Limits": forms(new(resp.Limits)), "resp.ProtocolError": forms(new(resp.ProtocolError)), "resp.Value": forms(new(resp.Value)),
	}
	var public []string
	for _, dir := range []string{".", "conn", "quorum", "resp"} {
		public = append(public, publicTypes(t, dir)...)
	}
	require.ElementsMatch(t, public, slices.Collect(maps.Keys(all)), "each exported type has a value above, with what is secret in it: add the new one")
	for name, values := range all {
		var seen testkit.LogSink
		for _, v := range values {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%c", "%e", "%p"} {
				fmt.Fprintf(&seen, verb+"\n", v)
			}
			seen.Add(v, fmt.Errorf("it failed: %v", v), errors.Join(fmt.Errorf("%+v", v)))
			text, _ := json.Marshal(map[string]any{"v": v}) // it refuses functions
			_, _ = seen.Write(text)
		}
		t.Run(name, func(t *testing.T) { seen.RequireNone(t, secrets...) })
	}
}
