package usage

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn/conntest"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// uses are what is counted: the file and the functions of each. The recipes are ours, and have their own tests.
var uses = []struct {
	what             string
	ours, peer, weak string
	by, weakBy       string
}{
	{"a job on one instance", "../../recipes/cron.go OnOneInstance", "job.go EtcdJob", "job.go RueidisJob", "etcd", "rueidislock"},
	{"a leader that can step down", "../../recipes/leader.go Lead", "leader.go EtcdLead", "leader.go RueidisLead", "etcd", "rueidislock"},
	{"a semaphore", "keys.go Limited", "keys.go EtcdLimited", "", "etcd", ""},
	{"an HTTP handler: 200, 409, 503", "../../recipes/http.go Exclusive", "http.go EtcdExclusive", "http.go RueidisExclusive", "etcd", "rueidislock"},
	{"a reader beside writers", "share.go Read", "share.go EtcdRead", "share.go CounterRead", "etcd", "redsync, counter"},
	{"a writer beside readers", "share.go Write", "share.go EtcdWrite", "share.go CounterWrite", "etcd", "redsync, counter"},
	{"1,000 fenced jobs", "keys.go Jobs", "keys.go EtcdJobs", "", "etcd", ""},
	{"two accounts", "keys.go Transfer", "keys.go EtcdTransfer", "keys.go RueidisTransfer", "etcd", "rueidislock"},
	{"Prometheus", "metrics.go Metrics", "metrics.go PeerMetrics", "", "by hand", ""},
	{"a unit test", "service_test.go TestService", "service_test.go TestRedsyncService", "", "redsync, miniredis", ""},
}

// TestTable: the table of the README is what is counted here, and ours is never longer.
func TestTable(t *testing.T) {
	table := "| use | ours | best peer | lines | on one server | lines |\n|---|---|---|---|---|---|\n"
	for _, u := range uses {
		ours, peer, weak := lines(t, u.ours), lines(t, u.peer), lines(t, u.weak)
		require.LessOrEqual(t, ours, peer, u.what)
		table += strings.ReplaceAll(fmt.Sprintf("| %s | %d | %s | %d | %s | %d |\n", u.what, ours, u.by, peer, u.weakBy, weak), "|  | 0 |", "| – | – |")
	}
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), table, "paste this:\n%s", table)
}

// lines counts the lines of a function that are neither blank nor comments. gofmt is the style of all.
func lines(t *testing.T, name string) (n int) {
	file, function, ok := strings.Cut(name, " ")
	if !ok {
		return 0
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, 0)
	require.NoError(t, err)
	all := strings.Split(string(text), "\n")
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == function {
			for _, line := range all[set.Position(f.Pos()).Line-1 : set.Position(f.End()).Line] {
				line = strings.TrimSpace(line)
				if line != "" && !strings.HasPrefix(line, "//") {
					n++
				}
			}
		}
	}
	require.Positive(t, n, name)
	return n
}

// library is one that is used, by a client; nil is what it cannot do, or what is tested elsewhere.
type library[Client any] struct {
	client      Client
	job         func(client Client, name string, atLeast time.Duration) cron.JobWrapper
	lead        func(ctx context.Context, client Client, name string, lead func(context.Context) error) error
	exclusive   func(client Client, key func(*http.Request) string, work func(context.Context, *http.Request) ([]byte, error)) http.HandlerFunc
	limited     func(ctx context.Context, client Client, name string, n int, work func(context.Context) error) error
	transfer    func(ctx context.Context, client Client, from, to string, move func(context.Context) error) error
	read, write func(ctx context.Context, client Client, name string, work func(context.Context) error) error
	jobs        func(ctx context.Context, client Client, jobs []string, run func(ctx context.Context, job string, fence uint64) error) error
}

// check shows that each use does what its name says.
func (l library[Client]) check(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// atMost has ten callers work, and requires that no more than n do so at once.
	atMost := func(n int64, call func(i int, work func(context.Context) error) error) {
		var running, done atomic.Int64
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if err := call(i, func(context.Context) error {
					if running.Add(1) > n {
						t.Error("too many at once")
					}
					defer running.Add(-1)
					done.Add(1)
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 10, done.Load())
	}
	var all sync.WaitGroup
	accounts := []string{"a", "b"}
	if l.transfer != nil {
		atMost(1, func(i int, work func(context.Context) error) error {
			return l.transfer(ctx, l.client, accounts[i%2], accounts[1-i%2], work)
		})
	}
	if l.limited != nil {
		atMost(2, func(_ int, work func(context.Context) error) error {
			return l.limited(ctx, l.client, "reports", 2, work)
		})
	}
	if l.read != nil {
		var both sync.WaitGroup
		both.Add(2)
		for range 2 { // two readers are there together
			all.Go(func() {
				assert.NoError(t, l.read(ctx, l.client, "config", func(ctx context.Context) error {
					both.Done()
					both.Wait()
					return ctx.Err()
				}))
			})
		}
		all.Wait()
		var readers, writers atomic.Int64
		for i := range 9 {
			share, those := l.read, &readers
			if i%3 == 0 {
				share, those = l.write, &writers
			}
			all.Go(func() {
				assert.NoError(t, share(ctx, l.client, "config", func(context.Context) error {
					those.Add(1)
					defer those.Add(-1)
					if w := writers.Load(); w > 1 || w == 1 && readers.Load() > 0 {
						t.Error("a writer is not alone")
					}
					return nil
				}))
			})
		}
		all.Wait()
	}
	if l.jobs != nil {
		var most, jobs = map[string]uint64{}, []string{"x", "y", "z"}
		var lock sync.Mutex
		for range 2 {
			require.NoError(t, l.jobs(ctx, l.client, jobs, func(_ context.Context, job string, fence uint64) error {
				lock.Lock()
				defer lock.Unlock()
				require.Greater(t, fence, most[job])
				most[job] = fence
				return nil
			}))
		}
		require.Len(t, most, len(jobs))
	}
	if l.job != nil {
		wrap, ran := l.job(l.client, "report", 0), 0
		wrap(cron.FuncJob(func() {
			ran++
			wrap(cron.FuncJob(func() { ran++ })).Run() // the other instance
		})).Run()
		require.Equal(t, 1, ran)
	}
	if l.lead != nil {
		term, stop := context.WithCancel(ctx)
		_ = l.lead(term, l.client, "leader", func(context.Context) error { stop(); return nil })
		require.Error(t, term.Err(), "it led")
	}
	if l.exclusive != nil {
		var nested int
		handler := l.exclusive(l.client, func(r *http.Request) string { return "upload" + r.URL.Path }, func(ctx context.Context, r *http.Request) ([]byte, error) { return []byte("done"), nil })
		outer := l.exclusive(l.client, func(r *http.Request) string { return "upload" + r.URL.Path }, func(ctx context.Context, r *http.Request) ([]byte, error) {
			inside := httptest.NewRecorder()
			handler(inside, r)
			nested = inside.Code
			return []byte("done"), nil
		})
		answer := httptest.NewRecorder()
		outer(answer, httptest.NewRequest("POST", "/7", nil))
		require.Equal(t, []int{http.StatusOK, http.StatusConflict}, []int{answer.Code, nested})
	}
}

func TestOurs(t *testing.T) {
	connect := func(cfg redlock.Config) *redlock.Client {
		cfg.Nodes, cfg.NodeTimeout, cfg.StallTimeout = conntest.Start(t, 3).Addrs(), time.Minute, time.Minute
		client, err := redlock.New(cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	client, fenced := connect(redlock.Config{}), connect(redlock.Config{Fenced: true, MaxTTL: time.Second})
	require.NoError(t, fenced.InitFencing(t.Context()))
	library[*redlock.Client]{client: client, limited: Limited, transfer: Transfer, read: Read, write: Write}.check(t)
	library[*redlock.Client]{client: fenced, jobs: Jobs}.check(t)
	page := httptest.NewRecorder()
	Metrics(client)(page, nil)
	require.Contains(t, page.Body.String(), `redlock_operations_total{kind="acquire",result="won"}`)
}

func TestRueidislock(t *testing.T) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{realredis.StartN(t, 1)[0].Addr()}, ForceSingleClient: true},
		KeyMajority:  1, KeyValidity: 10 * time.Second,
	})
	require.NoError(t, err)
	defer locker.Close()
	library[rueidislock.Locker]{client: locker, job: RueidisJob, lead: RueidisLead, exclusive: RueidisExclusive, transfer: RueidisTransfer}.check(t)
}

func TestCounter(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: realredis.StartN(t, 1)[0].Addr()})
	defer client.Close()
	locks := redsync.New(goredis.NewPool(client))
	library[*redis.Client]{
		client: client,
		read: func(ctx context.Context, client *redis.Client, name string, work func(context.Context) error) error {
			return CounterRead(ctx, client, locks, name, work)
		},
		write: func(ctx context.Context, client *redis.Client, name string, work func(context.Context) error) error {
			return CounterWrite(ctx, client, locks, name, work)
		},
	}.check(t)
}

func TestEtcd(t *testing.T) {
	endpoint := os.Getenv("REDLOCK_ETCD")
	if endpoint == "" {
		t.Skip("REDLOCK_ETCD names no server")
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	require.NoError(t, err)
	defer client.Close()
	library[*clientv3.Client]{
		client: client, job: EtcdJob, lead: EtcdLead, exclusive: EtcdExclusive, limited: EtcdLimited, transfer: EtcdTransfer, read: EtcdRead, write: EtcdWrite,
		jobs: func(ctx context.Context, client *clientv3.Client, jobs []string, run func(context.Context, string, uint64) error) error {
			return EtcdJobs(ctx, client, jobs, func(ctx context.Context, job string, fence int64) error { return run(ctx, job, uint64(fence)) })
		},
	}.check(t)
	registry := prometheus.NewRegistry()
	session, err := concurrency.NewSession(client)
	require.NoError(t, err)
	defer session.Close()
	lock := PeerMetrics(registry, concurrency.NewMutex(session, "counted").TryLock)
	require.NoError(t, lock(t.Context()))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader("# HELP lock_acquires_total Acquires by result.\n# TYPE lock_acquires_total counter\nlock_acquires_total{result=\"won\"} 1\n"), "lock_acquires_total"))
}
