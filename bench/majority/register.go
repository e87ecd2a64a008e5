package majority

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// keep writes "version:value" unless the node has a newer one.
const keep = `local had = redis.call('GET', KEYS[1])
if not had or tonumber(string.match(had, '^%d+')) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1] .. ':' .. ARGV[2]) end
return 1`

var errNoMajority = errors.New("no majority of the nodes has answered")

// register is a value that is on a majority of the nodes once it was written, or read.
type register struct {
	nodes *conn.Nodes
	all   *quorum.Config
	key   string
}

// ask sends a command, and returns when a majority has answered well; each such answer is given to seen.
func (r *register) ask(ctx context.Context, seen func(*resp.Value), words ...string) error {
	var votes quorum.Tally
	votes.Reset(r.all)
	for node, reply := range r.nodes.Do(ctx, resp.AppendCommand(nil, words...)) {
		outcome := quorum.Failed
		if reply.Err == nil && !reply.Value.IsError() {
			outcome = quorum.Granted
			seen(reply.Value)
		}
		if votes.Record(node, outcome) != quorum.Pending {
			break
		}
	}
	if votes.Verdict() != quorum.Won {
		return errNoMajority
	}
	return nil
}

// write is for one writer, who counts versions.
func (r *register) write(ctx context.Context, version uint64, value string) error {
	return r.ask(ctx, func(*resp.Value) {}, "EVAL", keep, "1", r.key, strconv.FormatUint(version, 10), value)
}

// read returns the newest value of a majority. It writes this back before: no later read returns an older one.
func (r *register) read(ctx context.Context) (version uint64, value string, err error) {
	err = r.ask(ctx, func(v *resp.Value) {
		number, text, _ := strings.Cut(string(v.Bytes), ":")
		if n, _ := strconv.ParseUint(number, 10, 64); n > version {
			version, value = n, text
		}
	}, "GET", r.key)
	if err == nil && version > 0 {
		err = r.write(ctx, version, value)
	}
	return version, value, err
}
