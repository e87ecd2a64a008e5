package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/result"
)

// contenders are the drivers of the processes that these tests start.
var contenders = program(fileLock{"lock"}, fileLock{"none"}, fileLock{"broken"}, where{}, sleeper{}, &still{name: "floor", session: runner{}})

// fileLock is a lock that processes of one machine share. The one named none refuses
// no one, the one named broken cannot be opened.
type fileLock struct{ name string }

func (d fileLock) Name() string { return d.name }
func (d fileLock) Close() error { return nil }

func (d fileLock) Open(context.Context, Config) (Session, error) {
	if d.name == "broken" {
		return nil, errors.New("no\nluck")
	}
	return d, nil
}

func (d fileLock) Worker() (Worker, error) { return &fileWorker{free: d.name == "none"}, nil }

type fileWorker struct {
	free bool
	f    *os.File
}

func (w *fileWorker) Acquire(_ context.Context, key string) (_ bool, err error) {
	if w.free {
		return true, nil
	}
	if w.f, err = os.OpenFile(filepath.Join(os.TempDir(), key), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return false, err
	}
	if err = syscall.Flock(int(w.f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return true, nil
	}
	time.Sleep(100 * time.Microsecond) // the library's own way to wait
	return false, w.f.Close()
}

func (w *fileWorker) Release(context.Context) error {
	if w.free {
		return nil
	}
	return w.f.Close()
}

// contend runs cells and returns the exit code, and each driver's result.
func contend(t *testing.T, args ...string) (code int, all map[string]*result.Result) {
	t.Setenv("TMPDIR", t.TempDir())
	var out, printed bytes.Buffer
	code = contenders.Main(append([]string{"-json", "-scenario", "contended", "-n", "1", "-warmup", "1ms"}, args...), &out, &printed)
	lines, err := result.Read(&out, "")
	require.NoError(t, err, printed.String())
	all = map[string]*result.Result{}
	for _, l := range lines {
		if l.Result != nil {
			all[l.Result.Driver] = l.Result
		}
	}
	return code, all
}

func TestContended(t *testing.T) {
	code, all := contend(t, "-driver", "lock,broken,floor", "-c", "2", "-procs", "3", "-hold", "1ms", "-d", "500ms")
	require.Equal(t, 1, code, "one is broken")
	r := all["lock"]
	require.Empty(t, r.Error)
	require.Positive(t, r.Pairs)
	require.InDelta(t, r.PairsPerSec/1000, r.IdealShare, 0.01)
	require.LessOrEqual(t, r.IdealShare, 1.0)
	require.InDelta(t, r.Pairs/6, r.WorkerMean, 0.01)
	require.LessOrEqual(t, r.WorkerLeast, 1.0)
	require.GreaterOrEqual(t, r.WorkerMost, 1.0)
	require.LessOrEqual(t, r.ProcessMost, 3.0)
	require.LessOrEqual(t, r.P50, r.Max)
	require.Positive(t, r.CPUPerPair)
	require.Equal(t, "open: no; luck", all["broken"].Error[len("broken: "):])
	require.True(t, all["floor"].Lacks)

	code, all = contend(t, "-driver", "lock", "-c", "5", "-procs", "2", "-hold", "1ms", "-d", "1m", "-once")
	require.Zero(t, code)
	require.InDelta(t, 10, all["lock"].Pairs, 0)
	require.Greater(t, all["lock"].Seconds, 0.01, "ten turns of a millisecond")
	require.Less(t, all["lock"].Seconds, 60.0)

	code, all = contend(t, "-driver", "none", "-c", "8", "-hold", "1ms", "-d", "20ms", "-fault", "hung")
	require.Equal(t, 1, code, "a lock that is none fails a run, also one with faults")
	require.True(t, all["none"].Unsafe)
}

// TestTheBoard: a new holder meets one that has released, one whose time is over and
// one that still holds.
func TestTheBoard(t *testing.T) {
	const ttl = 100 * time.Millisecond
	b, name, err := newBoard(1, 2, 2)
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(b.Close(), os.Remove(name))) }()
	b.to.Store(now() + int64(time.Hour))
	s, at := &b.slots[0], now()
	until := at + int64(time.Second)
	b.grant(0, 0, 2, at, at, until, ttl)
	b.release(0, 0, until)
	b.grant(0, 1, 2, at, now(), until, ttl)
	b.release(0, 1, until)
	b.grant(0, 2, 2, at, now(), until, ttl)
	require.EqualValues(t, 1, b.crews[0].same.Count())
	require.EqualValues(t, 1, b.crews[1].cross.Count())

	b.grant(0, 3, 2, at, until+int64(time.Second), until+int64(2*time.Second), ttl)
	require.Zero(t, b.records[3].overlaps, "the holder's time was over")
	require.Equal(t, time.Second-drift(ttl), b.crews[1].orphan.Max())
	b.release(0, 2, now()-1)
	require.Zero(t, b.records[2].overlaps, "its own time was over, as it knew")
	s.holder.Store(4)
	b.grant(0, 0, 2, at, at, until, ttl)
	require.Zero(t, b.records[0].overlaps, "it comes late: its time was over when the holder's began")

	at, until = now(), now()+int64(time.Hour)
	s.holder.Store(0)
	b.grant(0, 3, 2, at, at, until, ttl)
	b.grant(0, 0, 2, at, at, until, ttl)
	b.release(0, 3, until)
	require.EqualValues(t, 1, b.records[0].overlaps)
	require.EqualValues(t, 1, b.records[3].overlaps)

	s.holder.Store(0)
	b.grant(0, 3, 2, at, now(), until, ttl)
	b.grant(0, 1, 2, at, at-2, at-1, ttl)
	b.release(0, 3, until)
	require.EqualValues(t, 1, b.records[3].overlaps, "none with the late one")
	require.Zero(t, b.records[1].overlaps)

	// Those who share a key are no harm to each other, and are one to a holder, before it or after it.
	s.holder.Store(0)
	b.shares = true
	before := b.records[0].overlaps + b.records[1].overlaps + b.records[3].overlaps
	at, until = now(), now()+int64(time.Hour)
	b.share(0, 1, 2, at, at, until)
	b.share(0, 2, 2, at, at, until)
	b.part(1)
	b.part(2)
	b.grant(0, 0, 2, at, now(), until, ttl)
	b.release(0, 0, until)
	b.share(0, 1, 2, at, now(), until)
	b.part(1)
	require.Equal(t, before, b.records[0].overlaps+b.records[1].overlaps+b.records[3].overlaps)
	b.share(0, 1, 2, at, now(), until)
	b.grant(0, 0, 2, at, now(), until, ttl)
	require.EqualValues(t, before+1, b.records[0].overlaps+b.records[1].overlaps+b.records[3].overlaps)
	b.part(1)
	b.share(0, 1, 2, at, now(), until)
	require.EqualValues(t, before+2, b.records[0].overlaps+b.records[1].overlaps+b.records[3].overlaps)
}

func TestCommands(t *testing.T) {
	fields := map[string]string{"cmdstat_set": "calls=3,usec=1", "cmdstat_client|caching": "calls=2", "cmdstat_info": "calls=9,usec=1", "run_id": "x"}
	require.InDelta(t, 5, executed(fields), 0)
	require.InDelta(t, 2+4, between([]float64{5, 7}, []float64{7, 4}), 0, "the second was restarted")
}
