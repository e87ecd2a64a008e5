package drivers

import (
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
	s := &autoSession{ttl: cfg.TTL, quorum: len(cfg.Nodes)/2 + 1, wait: cfg.Scenario == harness.Contended, early: d.Quorum}
	for _, addr := range cfg.Nodes {
		client, err := dialGoRedis(ctx, addr, autoPipelineConns)
		if err != nil {
			return nil, s.abort(addr, err)
		}
		s.closers = append(s.closers, client.Close)
		if err := client.ScriptLoad(ctx, command.ReleaseScript).Err(); err != nil {
			return nil, s.abort(addr, err)
		}
		pipe, err := client.AsyncAutoPipelineWithOptions(d.options(cfg.Concurrency))
		if err != nil {
			return nil, s.abort(addr, err)
		}
		s.pipes = append(s.pipes, pipe)
	}
	return s, nil
}

// autoSession is a [harness.Pool].
type autoSession struct {
	closers
	pipes  []*redis.AutoPipeliner
	ttl    time.Duration
	quorum int
	wait   bool // for a lock that is taken
	early  bool // continue at a quorum
}

func (s *autoSession) Worker() (harness.Worker, error) { return &autoWorker{session: s}, nil }

type autoWorker struct {
	session    *autoSession
	key, token string
}

// autoPause is between attempts for a lock that is taken.
const autoPause = 16 * time.Millisecond

func (w *autoWorker) Acquire(ctx context.Context, key string) (bool, error) {
	for {
		ok, err := w.attempt(ctx, key)
		if ok || err != nil || !w.session.wait {
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
	s := w.session
	votes := make([]func() (bool, error), len(s.pipes))
	for i, pipe := range s.pipes {
		votes[i] = pipe.SetNX(ctx, w.key, w.token, s.ttl).Result
	}
	granted, err := s.count(votes)
	drift := s.ttl/100 + 2*time.Millisecond
	if granted >= s.quorum && time.Since(start)+drift < s.ttl {
		return true, nil
	}
	for _, pipe := range s.pipes { // after the SET, and not waited for
		pipe.EvalSha(ctx, command.ReleaseSHA1, []string{w.key}, w.token)
	}
	return false, err
}

func (w *autoWorker) Release(ctx context.Context) error {
	s := w.session
	votes := make([]func() (bool, error), len(s.pipes))
	keys := []string{w.key}
	for i, pipe := range s.pipes {
		reply := pipe.EvalSha(ctx, command.ReleaseSHA1, keys, w.token)
		votes[i] = func() (bool, error) {
			released, err := reply.Result() // an array where it is not all
			return released == int64(1), err
		}
	}
	granted, err := s.count(votes)
	if granted >= s.quorum {
		return nil
	}
	if err == nil {
		err = errNotHeld
	}
	return err
}

// vote is the answer of one node.
type vote struct {
	granted bool
	err     error
}

// count collects the answers until the session's kind of verdict is clear. The
// error is of those that failed, if they are why there is no quorum.
func (s *autoSession) count(votes []func() (bool, error)) (granted int, err error) {
	var failed []error
	add := func(ok bool, err error) {
		if err != nil {
			failed = append(failed, err)
		} else if ok {
			granted++
		}
	}
	if s.early {
		answers := make(chan vote, len(votes))
		for _, answer := range votes {
			go func() {
				ok, err := answer()
				answers <- vote{ok, err}
			}()
		}
		for left := len(votes); left > 0 && granted < s.quorum && granted+left >= s.quorum; left-- {
			v := <-answers
			add(v.granted, v.err)
		}
	} else {
		for _, answer := range votes {
			add(answer())
		}
	}
	if granted < s.quorum {
		err = errors.Join(failed...)
	}
	return granted, err
}
