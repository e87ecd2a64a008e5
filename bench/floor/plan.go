package floor

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/resp"
)

const (
	// laps is how many sets of keys take turns: enough that a late reply is
	// not about the keys in use, few enough that the requests of large batches
	// do not fall out of the cache, from which a client that encodes in place
	// would write them.
	laps = 8
	// tokenLen is the length of 128 random bits in base64, as locks have them.
	tokenLen = 22
)

// plan is everything that a cell writes and reads, encoded ahead.
type plan struct {
	setup []byte // written once to each node, before all else
	ready []byte // the answer to setup

	requests [][]byte // one a step
	replies  [][]byte // one a step; they repeat sooner than the requests do
	batch    int      // locks in a batch
}

// newPlan encodes a cell: acquiring and releasing a batch take turns.
func newPlan(cfg harness.Config) *plan {
	p := &plan{setup: resp.AppendCommand(nil, "SCRIPT", "LOAD", command.ReleaseScript)}
	p.ready = fmt.Appendf(nil, "$%d\r\n%s\r\n", len(command.ReleaseSHA1), command.ReleaseSHA1)
	ttl := strconv.FormatInt(cfg.TTL.Milliseconds(), 10)

	for lap := range laps {
		batch := make([]string, cfg.Concurrency)
		for i := range batch {
			batch[i] = cfg.Keys[i][lap%len(cfg.Keys[i])]
		}
		t := tokens(len(batch), lap)
		on, granted := acquire(batch, t, ttl)
		off, gone := release(batch, t)
		p.requests = append(p.requests, on, off)
		p.replies = [][]byte{granted, gone}
	}
	p.batch = cfg.Concurrency
	return p
}

// tokens makes n tokens of the usual length. That they can be guessed does not
// matter here: the length is what costs.
func tokens(n, lap int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%0*d", tokenLen, lap*n+i)
	}
	return all
}

// acquire encodes the SETs of a batch, and the replies if none is refused.
func acquire(keys, tokens []string, ttl string) (request, reply []byte) {
	for i, key := range keys {
		request = resp.AppendCommand(request, "SET", key, tokens[i], "NX", "PX", ttl)
	}
	return request, bytes.Repeat([]byte("+OK\r\n"), len(keys))
}

// release encodes the releases of a batch, merged into calls of a script, and the replies if all
// locks were held.
func release(keys, tokens []string) (request, reply []byte) {
	for len(keys) > 0 {
		n := min(len(keys), command.MaxKeys)
		args := []string{"EVALSHA", command.ReleaseSHA1, strconv.Itoa(n)}
		args = append(append(args, keys[:n]...), tokens[:n]...)
		request = resp.AppendCommand(request, args...)
		reply = fmt.Appendf(reply, ":%d\r\n", n)
		keys, tokens = keys[n:], tokens[n:]
	}
	return request, reply
}
