package harness

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock/bench/child"
	"github.com/redlock-go/redlock/bench/pause"
)

const (
	// contenderEnv makes a copy of this binary a process of a contended cell.
	contenderEnv = "REDLOCK_BENCH_CONTENDER"
	// ready is its answer when all is well.
	ready = "ready"
	// zipf is the exponent by which goroutines choose one of several keys.
	zipf = 1.1
)

// spec describes the task of such a process.
type spec struct {
	Driver    string
	Config    Config // its keys are those of all
	Board     string
	Slots     int // of the board
	Processes int
	Stride    int // the most workers of a process
	Process   int // its number
	Crowd     crowd
	Shares    bool          // a crowd does
	Lead      time.Duration // from the begin of the work to the window
	Once      bool
	Procs     int // GOMAXPROCS, or 0
}

// ServeIfContender is a process of a contended cell, if it was started for that.
func (p Program) ServeIfContender() {
	child.Serve(contenderEnv, func(text string) error {
		var s spec
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return err
		}
		err := p.contend(s)
		if err == nil {
			return nil
		}
		if lacks := Unsupported(""); errors.As(err, &lacks) {
			err = lacks
		}
		fmt.Println(strings.ReplaceAll(err.Error(), "\n", "; "))
		return nil
	})
}

// contend opens the driver, reports that it is ready, waits for the order to begin, and answers
// with its errors at the end.
func (p Program) contend(s spec) (err error) {
	b, err := openBoard(s.Board, s.Slots, s.Processes, s.Stride)
	if err != nil {
		return err
	}
	picked := p.pick([]string{s.Driver})
	if len(picked) == 0 {
		return Unsupported("the processes of a contended cell do not have this driver")
	}
	b.shares = s.Shares
	if _, is := picked[0].(Sharer); s.Crowd.Share && !is {
		return Unsupported("has no shared locks")
	}
	session, err := picked[0].Open(context.Background(), s.Config)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	runtime.GOMAXPROCS(s.Procs)
	pool, ok := session.(Pool)
	if !ok {
		return errors.Join(Unsupported("has no workers"), session.Close())
	}
	all := make([]*contender, s.Config.Concurrency)
	for i := range all {
		c := &contender{spec: s, board: b, me: s.Process*s.Stride + i, own: i}
		c.zipf = rand.NewZipf(rand.New(rand.NewPCG(uint64(c.me), 1)), zipf, 1, uint64(len(s.Config.Keys[0])-1))
		c.worker, err = pool.Worker()
		if err == nil && s.Crowd.Hold > 0 && !s.Crowd.Vary {
			c.timer, err = pause.New()
		}
		if err != nil {
			return errors.Join(err, session.Close())
		}
		all[i] = c
	}
	fmt.Println(ready)
	orders := bufio.NewScanner(os.Stdin)
	orders.Scan()
	go func() {
		orders.Scan() // the parent has given up, or has ended
		os.Exit(1)
	}()

	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	me := &b.crews[s.Process]
	from := time.AfterFunc(time.Duration(b.from.Load()-now()), func() { me.cpuFrom.Store(int64(CPUTime())) })
	to := time.AfterFunc(time.Duration(b.to.Load()-now()), func() {
		me.cpuTo.Store(int64(CPUTime()))
		cancel()
	})
	defer from.Stop()
	for _, c := range all {
		wg.Go(func() { c.work(ctx) })
	}
	wg.Wait()
	if to.Stop() { // all have had their one turn
		me.cpuTo.Store(int64(CPUTime()))
	}
	if err := bounded(session.Close); err != nil {
		return err
	}
	fmt.Println(ready)
	return nil
}

// contender is one goroutine.
type contender struct {
	spec
	board  *board
	me     int
	own    int // its number in the process
	worker Worker
	timer  *pause.Timer // with a hold that does not vary
	zipf   *rand.Zipf
}

// work takes turns until the window ends, or one.
func (c *contender) work(ctx context.Context) {
	time.Sleep(time.Duration(c.board.from.Load()-now()) - c.Lead)
	r := &c.board.records[c.me]
	keys := c.Config.Keys[0]
	for since := now(); since < c.board.to.Load(); since = now() {
		key := 0
		switch {
		case c.Crowd.Keys > 0:
			key = c.own % c.Crowd.Keys
		case len(keys) > 1:
			key = int(c.zipf.Uint64())
		}
		ok, err := c.worker.Acquire(ctx, keys[key])
		for ; !ok && err == nil && ctx.Err() == nil; ok, err = c.worker.Acquire(ctx, keys[key]) {
			if c.Crowd.Poll {
				_ = sleep(ctx, pollLeast+rand.N(pollMore))
			}
		}
		switch {
		case err == nil && ok:
			err = c.turn(ctx, c.slot(key), since)
		case ctx.Err() != nil:
			c.board.cut(c.Process, time.Duration(now()-since))
			return
		}
		if err != nil && c.board.counts(now()) {
			r.failed(err)
		}
		if c.Once {
			return
		}
	}
}

// slot is where the holder of a key is on the board, or of one of its permits.
func (c *contender) slot(key int) int {
	if w, is := c.worker.(Numbered); is {
		key = key*(c.Slots/len(c.Config.Keys[0])) + w.Permit()
	}
	return key
}

// turn is the time from a grant to the end of the release.
func (c *contender) turn(ctx context.Context, key int, since int64) (err error) {
	granted := now()
	valid := c.Config.TTL - drift(c.Config.TTL)
	if l, ok := c.worker.(Lasting); ok {
		valid = l.Remaining()
	}
	until := granted + int64(valid)
	if c.Crowd.Share {
		c.board.share(key, c.me, c.Stride, since, granted, until)
	} else {
		c.board.grant(key, c.me, c.Stride, since, granted, until, c.Config.TTL)
	}
	switch {
	case c.Crowd.Crash:
		<-ctx.Done()
		return nil
	case c.timer != nil:
		err = c.timer.Sleep(c.Crowd.Hold)
	case c.Crowd.Hold > 0:
		_ = sleep(ctx, c.Crowd.Hold/2+rand.N(c.Crowd.Hold/2+1))
	}
	if c.Crowd.Share {
		c.board.part(c.me)
	} else {
		c.board.release(key, c.me, until)
	}
	return cmp.Or(err, c.worker.Release(context.Background()))
}
