package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redlock-go/redlock"
)

const aboutBreak = `
Break shows what it would release and asks. It then releases the one token that a quorum shows, on all
nodes; a lock that is acquired meanwhile stays. The holder learns of it within a third of its TTL, or
when it extends: its work does not end by this, but that of redlock run.

  redlock break -config /etc/redlock.conf backup
  redlock break -yes backup               asks nothing
  redlock break -n 3 build                each permit of run -n 3 build that is in use, after a question`

func breakLock(ctx context.Context, env *environment, args []string) error {
	t, client, rest, err := newTool(env, "break [settings] key", aboutBreak, args)
	if err != nil {
		return err
	}
	defer client.Close()
	state, err := inspectOne(ctx, client, "break", rest)
	if err != nil {
		return err
	}
	if state.Status == redlock.KeyFree {
		states, err := permitsInUse(ctx, client, state.Key, t.permitsOf)
		if err != nil || len(states) > 0 {
			return t.breakPermits(ctx, client, states, err)
		}
	}
	k := newKey(state)
	fmt.Fprintln(env.out, k.headline())
	switch state.Status {
	case redlock.KeyUnknown:
		return unknownState(state)
	case redlock.KeyFree:
		return nil
	case redlock.KeySplit:
		return &exit{exitFailed, errors.New("no quorum has one value: these are attempts, or what they left, and end with their TTL")}
	case redlock.KeyShared:
		return &exit{exitFailed, errors.New("break ends locks of one holder; DEL on each node ends a shared lock for all holders, who may go on reading")}
	case redlock.KeyEternal:
		return &exit{exitFailed, errors.New("it has no TTL, so it is no lock of this library; remove it with the program that set it")}
	}
	return t.breakOne(ctx, client, state)
}

// breakPermits shows the permits of a name in use, and releases each after a question.
func (t *tool) breakPermits(ctx context.Context, client *redlock.Client, states []redlock.KeyState, err error) error {
	if err != nil {
		return statusOf(err)
	}
	all := permits(states, t.permitsOf)
	if t.yes && t.permitsOf == 0 {
		return usage("%q has %s: -yes releases all of them with -n, as in break -yes -n 3", all[0].Name, inUse(all))
	}
	kept := 0
	for i, k := range all {
		fmt.Fprintln(t.env.out, k.headline())
		if !t.yes && !ask(t.env, "release it?") {
			kept++
			continue
		}
		if err := t.releaseOf(ctx, client, states[i]); err != nil {
			return err
		}
	}
	if kept == len(all) {
		return &exit{exitFailed, errors.New("nothing was released")}
	}
	return nil
}

// breakOne releases a lock after a question.
func (t *tool) breakOne(ctx context.Context, client *redlock.Client, state redlock.KeyState) error {
	if !t.yes && !ask(t.env, "release it?") {
		return &exit{exitFailed, errors.New("nothing was released")}
	}
	return t.releaseOf(ctx, client, state)
}

// releaseOf releases the lock of another process.
func (t *tool) releaseOf(ctx context.Context, client *redlock.Client, state redlock.KeyState) error {
	lock, err := client.Attach(ctx, state.Key, state.Token(), time.Now().Add(redlock.MaxTTL))
	if err == nil {
		err = lock.Release(ctx)
	}
	switch {
	case errors.Is(err, redlock.ErrNotHeld):
		return &exit{exitFailed, errors.New("it was released or has ended meanwhile; nothing else was released")}
	case err != nil:
		return statusOf(err)
	}
	fmt.Fprintln(t.env.out, "released")
	return nil
}

func ask(env *environment, question string) bool {
	fmt.Fprintf(env.out, "%s [y/N] ", question)
	answer, _ := env.line()
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
