package main

import (
	"bufio"
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
  redlock break -yes backup               asks nothing`

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
	k := newKey(state)
	fmt.Fprintln(env.out, k.headline())
	switch state.Status {
	case redlock.KeyUnknown:
		return &exit{exitNoQuorum, errors.New("too few nodes answer")}
	case redlock.KeyFree:
		return nil
	case redlock.KeySplit:
		return &exit{exitFailed, errors.New("no quorum has one value: these are attempts, or what they left, and end with their TTL")}
	case redlock.KeyShared:
		return &exit{exitFailed, errors.New("break ends locks of one holder; DEL on each node ends a shared lock for all holders, who may go on reading")}
	case redlock.KeyEternal:
		return &exit{exitFailed, errors.New("it has no TTL, so it is no lock of this library; remove it with the program that set it")}
	}
	if !t.yes && !ask(t.env, "release it?") {
		return &exit{exitFailed, errors.New("nothing was released")}
	}
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
	fmt.Fprintln(env.out, "released")
	return nil
}

func ask(env *environment, question string) bool {
	fmt.Fprintf(env.out, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(env.in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
