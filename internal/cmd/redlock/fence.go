package main

import (
	"context"
	"fmt"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/frontend"
)

const aboutFence = `
Fence status shows which nodes have a vote in fencing. Fence init gives nodes their vote: once before the
first start, and after too many nodes have lost the tokens. It takes as long as -max-ttl, which all
clients of the nodes must have alike, and the same nodes by the same names.

After a loss give the largest token that the resources have seen with -at-least; read it when -max-ttl has
passed since the nodes were lost.

With -next-nodes or -next-max-ttl fence init then has clients without them refused, and those with the next
settings alone served. Where a group had no vote yet it gives the vote and does nothing else: call it again
before the next step. SERVES is "next" where that is done, and "now" in groups that do not change.`

func fence(ctx context.Context, env *environment, args []string) error {
	var atLeast uint64
	if len(args) == 0 {
		args = []string{"-h"}
	}
	action, rest := args[0], args[1:]
	if action == "-h" || action == "--help" {
		action, rest = "status", []string{"-h"}
	}
	if action != "status" && action != "init" {
		return usage("fence wants status or init, and was given %q", action)
	}
	t := &tool{settings: newSettings(env, "fence status|init [settings]", aboutFence)}
	t.addNodes()
	t.BoolVar(&t.json, "json", false, "print JSON")
	t.Uint64Var(&atLeast, "at-least", 0, "the largest `token` that the resources have seen; 0 for a first start")
	rest, err := t.parse(rest)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return usage("fence %s takes no argument %q", action, rest[0])
	}
	t.fenced = true
	client, err := t.connect(t.logger())
	if err != nil {
		return err
	}
	defer client.Close()
	if action == "init" {
		if err := initFencing(ctx, t, client, atLeast); err != nil {
			return err
		}
	}
	return t.showNodes(ctx, client)
}

func initFencing(ctx context.Context, t *tool, client *redlock.Client, atLeast uint64) error {
	wait, what := frontend.MaxTTL(max(t.maxTTL, t.nextMaxTTL)), "giving nodes their vote"
	if t.isChanging() {
		wait, what = 2*wait, what+", and then to the next configuration"
	}
	fmt.Fprintf(t.env.err, "redlock: %s; this takes up to %v\n", what, wait)
	return statusOf(client.InitFencing(ctx, atLeast))
}
