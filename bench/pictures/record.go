package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// story is what happens while a client is recorded.
const story = "At 12 s one stops answering, at 29 s one ends and returns without its data, at 50 s a lock is deleted by hand. The x axes are seconds."

// record has a client of five masters work for a minute, and returns what was scraped.
func record() (*recording, error) {
	var masters []*fakeredis.Server
	var names []string
	for i := range 5 {
		m, err := fakeredis.Start(fakeredis.Options{})
		if err != nil {
			return nil, err
		}
		defer m.Close()
		masters = append(masters, m)
		names = append(names, strconv.Quote(m.Addr()), fmt.Sprintf(`"node %d"`, i+1))
	}
	client, err := redlock.New(redlock.Config{Nodes: fakeredis.Addrs(masters), MaxTTL: 8 * time.Second})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.Ready(context.Background()); err != nil { // the masters have no vote until MaxTTL has passed
		return nil, err
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	var callers sync.WaitGroup
	defer callers.Wait()
	defer stop()
	for i := range 12 {
		callers.Go(func() { work(ctx, client, i) })
	}
	for at, do := range map[time.Duration]func(){
		12 * time.Second: masters[2].Hang,
		19 * time.Second: func() { _ = masters[2].Heal() },
		29 * time.Second: masters[4].Down,
		35 * time.Second: func() { _ = masters[4].Restart(true) },
		50 * time.Second: func() {
			for _, m := range masters {
				m.Del("job:0")
			}
		},
	} {
		time.AfterFunc(at, do)
	}
	r := &recording{series: map[string][]promql.FPoint{}}
	for next := time.Now(); ctx.Err() == nil; time.Sleep(time.Until(next)) {
		var text strings.Builder
		if err := client.Stats().WriteMetrics(&text); err != nil {
			return nil, err
		}
		r.scrape(strings.NewReplacer(names...).Replace(text.String()))
		next = next.Add(every)
	}
	return r, nil
}

// work is one of the callers: with keys of their own, with one key that they want, or with locks that
// are kept alive.
func work(ctx context.Context, client *redlock.Client, i int) {
	for ; ctx.Err() == nil; time.Sleep(time.Duration(5+i) * time.Millisecond) {
		var lock redlock.Lock
		var err error
		switch i % 3 {
		case 0:
			lock, err = client.TryAcquire(ctx, fmt.Sprint("own:", i), 5*time.Second)
		case 1:
			wait, cancel := context.WithTimeout(ctx, time.Duration(15+5*i)*time.Millisecond)
			lock, err = client.Acquire(wait, "wanted", 5*time.Second)
			cancel()
		case 2:
			err = client.TryDo(ctx, fmt.Sprint("job:", i-2), 3*time.Second, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
		}
		if err == nil {
			time.Sleep(4 * time.Millisecond)
			_ = lock.Release(context.WithoutCancel(ctx))
		}
	}
}
