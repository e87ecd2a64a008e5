package router

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/group"
	"github.com/redlock-go/redlock/internal/metrics"
	"github.com/redlock-go/redlock/internal/texts"
)

// lacking is the groups in which no lock can be acquired, or that no token can come from.
type lacking struct {
	groups int
	of     []error // of those that lack something, each with its label
}

// add notes the error of a group, which may be nil.
func (l *lacking) add(label string, err error) {
	if err != nil {
		l.of = append(l.of, fmt.Errorf("%s: %w", label, err))
	}
}

// Error names the groups, and so the keys.
func (l *lacking) Error() string {
	var all []string
	for _, err := range l.of {
		all = append(all, strings.Replace(err.Error(), ": redlock: ", ": ", 1))
	}
	return fmt.Sprintf("redlock: the keys of %d of %d groups cannot be locked: %s", len(l.of), l.groups, strings.Join(all, "; "))
}

func (l *lacking) Unwrap() []error { return l.of }

// err is nil if no group lacks anything.
func (l *lacking) err() error {
	if len(l.of) == 0 {
		return nil
	}
	return l
}

// Ready waits until an acquire can win in every group, or with every until every node may vote. With ctx it ends for all of them.
func (r *Router) Ready(ctx context.Context, every bool) error {
	if len(r.groups) == 1 {
		return r.groups[0].Ready(ctx, every)
	}
	all := lacking{groups: len(r.groups)}
	for i, g := range r.groups {
		err := g.Ready(ctx, every)
		if err == engine.ErrClosed {
			return err
		}
		all.add(r.label(i), err)
	}
	return all.err()
}

// together calls f for all groups at once, and returns when all have. f runs no user code but clocks.
func (r *Router) together(ctx context.Context, f func(ctx context.Context, i int) error) error {
	if len(r.groups) == 1 {
		return f(ctx, 0)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	errs := make([]error, len(r.groups))
	end, done := &mirror{Context: context.Background(), done: make(chan struct{})}, make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for i := range r.groups {
			all.Go(func() { errs[i] = f(end, i) })
		}
		all.Wait()
	}()
	end.follow(ctx, done)
	<-done
	all := lacking{groups: len(r.groups)}
	for i, err := range errs {
		if err == engine.ErrClosed {
			return err
		}
		all.add(r.label(i), err)
	}
	return all.err()
}

// mirror is a context that ends as a user's does, and runs no user code.
type mirror struct {
	context.Context
	done chan struct{}
	err  error // once done is closed
}

func (m *mirror) Done() <-chan struct{} { return m.done }

func (m *mirror) Err() error {
	select {
	case <-m.done:
		return m.err
	default:
		return nil
	}
}

// follow waits for the end of ctx, or until enough. Then m has ended.
func (m *mirror) follow(ctx context.Context, enough <-chan struct{}) {
	m.err = context.Canceled // if ctx panics, which ends m too
	defer close(m.done)
	if err := ctx.Err(); err != nil {
		m.err = err
		return
	}
	select {
	case <-ctx.Done():
	case <-enough:
	}
	m.err = texts.EndOf(ctx)
}

// Stats is the sums of what the groups have counted, each at one moment, and all nodes, as node shows them.
func Stats[N any](r *Router, node func(metrics.Node) N) (s metrics.Stats[N]) {
	s.Nodes = make([]N, 0, r.Len())
	for _, g := range r.groups {
		group.AddStats(g, &s, node)
	}
	return s
}

// Len is the number of nodes of all groups.
func (r *Router) Len() (n int) {
	for _, g := range r.groups {
		n += g.Len()
	}
	return n
}
