package main

import (
	"context"
	"fmt"
)

const aboutFence = `
Fence status shows which nodes have a vote in fencing, and why the others have none. All clients of the nodes must
have the same -max-ttl, and the same nodes by the same names. The other verbs take as long as -max-ttl:

  fence init     gives the nodes of a new fleet their vote, once, or those of a group that -next-nodes adds
  fence recover  after too many nodes have lost the tokens: -at-least is the largest token that the resources
                 have seen, read when -max-ttl has passed since; -lost names nodes that never come back,
                 as in -nodes, the port left out where one node has the name; -force takes a number more
                 than a day beyond what all nodes and the clock show: it cannot be taken back
  fence change   with -next-nodes or -next-max-ttl, when no client without them is left: has such clients
                 refused, and those with the next settings alone served

  redlock fence init -fenced -config /etc/redlock.conf
  redlock fence recover -fenced -config /etc/redlock.conf -at-least 1790000000000000

Each looks at all nodes first, and writes nothing if they are not as it needs them. Status never does. Each may be cut off and made
again. SERVES is "next" where a change is done, and "now" in groups that do not change.`

// fencing holds the settings of fence.
type fencing struct {
	atLeast uint64
	lost    string
	force   bool
}

func fence(ctx context.Context, env *environment, args []string) error {
	if len(args) == 0 {
		args = []string{"-h"}
	}
	action, rest := args[0], args[1:]
	if action == "-h" || action == "--help" {
		action, rest = "status", []string{"-h"}
	}
	about, known := acts[action]
	if !known {
		return usage("fence wants init, recover, change or status, and was given %q", action)
	}
	t := &tool{newSettings(env, "fence init|recover|change|status [settings]", aboutFence)}
	rest, err := t.parse(rest)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return usage("fence %s takes no argument %q", action, rest[0])
	}
	t.fenced, t.looks = true, true
	client, err := t.connect(t.logger())
	if err != nil {
		return err
	}
	defer client.Close()
	if about != "" {
		fmt.Fprintf(t.env.err, "redlock: %s; this takes up to %v\n", about, 2*max(t.maxTTL, t.nextMaxTTL))
	}
	switch action {
	case "init":
		err = client.InitFencing(ctx)
	case "recover":
		err = client.RecoverFencing(ctx, t.fence.atLeast, list(t.fence.lost)...)
	case "change":
		err = client.ChangeFencing(ctx)
	}
	if err != nil {
		return statusOf(err)
	}
	return t.showNodes(ctx, client)
}

// acts maps the verbs to their acts.
var acts = map[string]string{
	"status":  "",
	"init":    "giving the nodes of a new fleet their vote",
	"recover": "giving nodes their vote that have forgotten",
	"change":  "changing to the next configuration",
}
