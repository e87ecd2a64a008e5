package drivers

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/internal/wire/command"
)

// AutoPipeline is a Redlock written by hand on go-redis, as experts in that
// library write one today: each node has an AsyncAutoPipeline, which
// merges what goroutines ask for at the same time into pipelines; an operation
// is queued for all nodes first and waited for afterwards.
//
// It has what makes a lock correct (a fresh random token, validity, a release
// on all nodes after a lost attempt) and nothing beyond: no bound on what is
// queued, no care for a node that is down.
type AutoPipeline struct {
	// Quorum ends an operation when a quorum has answered, for which each of
	// them needs a goroutine a node: the futures of go-redis can only be waited
	// for one by one. Without it all nodes are waited for in turn, which costs
	// less while they are all healthy.
	Quorum bool
}

// options are those with which each form was fastest on loopback, of which the
// library offers half duplex (a batch waits for the one before it) in batches of
// 200 or of all workers, full duplex, and a pause before each flush. Full duplex
// is also what its documentation recommends for longer round trips.
func (d AutoPipeline) options(workers int) *redis.AutoPipelineOptions {
	options := redis.DefaultAutoPipelineOptions()
	options.FullDuplex = d.Quorum
	options.MaxBatchSize = max(options.MaxBatchSize, workers)
	return options
}

func (d AutoPipeline) Name() string {
	if d.Quorum {
		return "autopipeline-quorum"
	}
	return "autopipeline"
}

// autoPipelineConns is enough: either form writes to one connection at a time.
const autoPipelineConns = 2

func (d AutoPipeline) Open(ctx context.Context, cfg harness.Config) (harness.Session, error) {
	pipes, opened, err := openAll(cfg.Nodes, func(addr string) (*redis.AutoPipeliner, func() error, error) {
		client, err := dialGoRedis(ctx, addr, autoPipelineConns)
		if err != nil {
			return nil, nil, err
		}
		pipe, err := client.AsyncAutoPipelineWithOptions(d.options(cfg.Concurrency))
		if err == nil {
			err = client.ScriptLoad(ctx, command.ReleaseScript).Err()
		}
		if err != nil {
			return nil, nil, errors.Join(err, client.Close())
		}
		return pipe, client.Close, nil
	})
	return &session{opened, func() harness.Worker {
		return &autoWorker{pipes: pipes, ttl: cfg.TTL, quorum: len(pipes)/2 + 1, wait: cfg.Scenario == harness.Contended, early: d.Quorum}
	}}, err
}

type autoWorker struct {
	pipes      []*redis.AutoPipeliner
	ttl        time.Duration
	quorum     int
	wait       bool // for a lock that is taken
	early      bool // continue at a quorum
	key, token string
}

// autoPause is between attempts for a lock that is taken.
const autoPause = 16 * time.Millisecond

func (w *autoWorker) Acquire(ctx context.Context, key string) (bool, error) {
	for {
		ok, err := w.attempt(ctx, key)
		if ok || err != nil || !w.wait {
			return ok, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(autoPause):
		}
	}
}

// attempt sets a new token on all nodes.
func (w *autoWorker) attempt(ctx context.Context, key string) (bool, error) {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	w.key, w.token = key, base64.RawStdEncoding.EncodeToString(random[:])

	start := time.Now()
	votes := make([]func() (bool, error), len(w.pipes))
	for i, pipe := range w.pipes {
		votes[i] = pipe.SetNX(ctx, w.key, w.token, w.ttl).Result
	}
	granted, err := w.count(votes)
	drift := w.ttl/100 + 2*time.Millisecond
	if granted >= w.quorum && time.Since(start)+drift < w.ttl {
		return true, nil
	}
	for _, pipe := range w.pipes { // after the SET, and not waited for
		pipe.EvalSha(ctx, command.ReleaseSHA1, []string{w.key}, w.token)
	}
	return false, err
}

func (w *autoWorker) Release(ctx context.Context) error {
	votes := make([]func() (bool, error), len(w.pipes))
	keys := []string{w.key}
	for i, pipe := range w.pipes {
		reply := pipe.EvalSha(ctx, command.ReleaseSHA1, keys, w.token)
		votes[i] = func() (bool, error) {
			released, err := reply.Result() // an array where it is not all
			return released == int64(1), err
		}
	}
	granted, err := w.count(votes)
	if granted >= w.quorum {
		return nil
	}
	return cmp.Or(err, errNotHeld)
}

// vote is the answer of one node.
type vote struct {
	granted bool
	err     error
}

// count collects the answers until the worker's kind of verdict is clear. The
// error is of those that failed, if they are why there is no quorum.
func (w *autoWorker) count(votes []func() (bool, error)) (granted int, err error) {
	var failed []error
	add := func(ok bool, err error) {
		if err != nil {
			failed = append(failed, err)
		} else if ok {
			granted++
		}
	}
	if w.early {
		answers := make(chan vote, len(votes))
		for _, answer := range votes {
			go func() {
				ok, err := answer()
				answers <- vote{ok, err}
			}()
		}
		for left := len(votes); left > 0 && granted < w.quorum && granted+left >= w.quorum; left-- {
			v := <-answers
			add(v.granted, v.err)
		}
	} else {
		for _, answer := range votes {
			add(answer())
		}
	}
	if granted < w.quorum {
		err = errors.Join(failed...)
	}
	return granted, err
}
