package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/bench/fencing/account"
)

// scene is two holders, and the rows that they write.
type scene struct {
	slow, quick *child.Process
	rows        account.Accounts
	last        map[int64]uint64 // the largest token of each row's lock
}

// outcome is what became of a stale write.
type outcome struct {
	Slow, Quick uint64 // tokens
	Refused     bool   // the database said so
	Landed      bool   // the row has it
}

// startScene starts the holders.
func startScene(s setup, rows account.Accounts) (*scene, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	sc := &scene{rows: rows, last: make(map[int64]uint64)}
	for _, p := range []**child.Process{&sc.slow, &sc.quick} {
		if *p, _, err = child.Start(holderEnv, string(text), 1); err != nil {
			return nil, errors.Join(err, sc.close())
		}
	}
	return sc, nil
}

func (sc *scene) close() (err error) {
	for _, p := range []*child.Process{sc.slow, sc.quick} {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	return err
}

// play is one round: the slow holder has the lock, has looked at the clock, and is
// stopped; the other acquires, which it can when the lock has expired, and writes; the
// slow one goes on where it was.
func (sc *scene) play(ctx context.Context, round int, id int64, checked bool) (o outcome, err error) {
	stale, fresh := fmt.Sprint("stale ", round), fmt.Sprint("fresh ", round)
	if o.Slow, err = sc.acquire(sc.slow, order{id, stale, checked}); err != nil {
		return o, err
	}
	if err := sc.slow.Signal(syscall.SIGSTOP); err != nil {
		return o, err
	}
	o.Quick, err = sc.acquire(sc.quick, order{id, fresh, checked})
	if err == nil {
		err = expect(sc.quick, saidWritten)
	}
	if err := errors.Join(err, sc.slow.Signal(syscall.SIGCONT)); err != nil {
		return o, err
	}
	said, err := sc.slow.Ask("write")
	if err != nil {
		return o, err
	}
	value, _, err := sc.rows.Read(ctx, id)
	if err != nil {
		return o, err
	}
	o.Refused, o.Landed = said == saidRefused, value == stale
	if !o.Landed && value != fresh {
		return o, fmt.Errorf("the row has %q", value)
	}
	return o, nil
}

// acquire has a holder acquire, and returns its token, which must be the largest yet.
func (sc *scene) acquire(p *child.Process, o order) (fence uint64, err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return 0, err
	}
	said, err := p.Ask(string(text))
	if err != nil {
		return 0, err
	}
	if fence, err = strconv.ParseUint(said, 10, 64); err != nil {
		return 0, err
	}
	if fence <= sc.last[o.ID] {
		return 0, fmt.Errorf("the token %d was given after %d", fence, sc.last[o.ID])
	}
	sc.last[o.ID] = fence
	return fence, nil
}

func expect(p *child.Process, want string) error {
	said, err := p.Ask("write")
	if err == nil && said != want {
		err = fmt.Errorf("the holder said %q", said)
	}
	return err
}
