// Picture draws the dashboard, grafana.json, as an SVG: what it shows of a client that works for a
// minute while masters fail. The client's own series are scraped twice a second, and the queries
// are those of the dashboard, as far as query.go knows their language.
//
//	cd bench/metrics && go run ./picture > ../results/dashboard.svg
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

const (
	long  = time.Minute
	every = 500 * time.Millisecond // is between two scrapes
)

func main() {
	file, err := os.ReadFile("grafana.json")
	var panels struct{ Panels []panel }
	if err == nil {
		err = json.Unmarshal(file, &panels)
	}
	var all []scrape
	if err == nil {
		all, err = record()
	}
	if err == nil {
		err = draw(os.Stdout, panels.Panels, all)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// record has a client of five masters work, and returns what was scraped.
func record() (all []scrape, err error) {
	var masters []*fakeredis.Server
	for range 5 {
		m, err := fakeredis.Start(fakeredis.Options{})
		if err != nil {
			return nil, err
		}
		defer m.Close()
		masters = append(masters, m)
	}
	client, err := redlock.New(redlock.Config{Nodes: fakeredis.Addrs(masters), MaxTTL: 8 * time.Second})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.Ready(context.Background()); err != nil { // the masters have no vote until MaxTTL has passed
		return nil, err
	}
	ctx, stop := context.WithTimeout(context.Background(), long)
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
	for began := time.Now(); ctx.Err() == nil; pause(ctx, every) {
		var text strings.Builder
		if err := client.Stats().WriteMetrics(&text); err != nil {
			return nil, err
		}
		all = append(all, read(text.String(), time.Since(began)))
	}
	return all, nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// work is one of the callers: with keys of their own, with one key that they want, or with locks that
// are kept alive.
func work(ctx context.Context, client *redlock.Client, i int) {
	for ; ctx.Err() == nil; pause(ctx, time.Duration(5+i)*time.Millisecond) {
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
			pause(ctx, 4*time.Millisecond)
			_ = lock.Release(context.WithoutCancel(ctx))
		}
	}
}
