package majority

import (
	"context"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// elect grants a key to the largest term for ten seconds.
const elect = `local had = redis.call('GET', KEYS[1])
if had and tonumber(had) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', 10000)
return 1`

// lead reports whether a majority follows a term (Won), or refuses it (Lost, unless nodes have failed).
func lead(ctx context.Context, nodes *conn.Nodes, of *quorum.Config, key, term string) quorum.Verdict {
	var votes quorum.Tally
	votes.Reset(of)
	for node, reply := range nodes.Do(ctx, resp.AppendCommand(nil, "EVAL", elect, "1", key, term)) {
		outcome := quorum.Failed
		if reply.Err == nil && reply.Value.Kind == resp.Integer {
			outcome = quorum.Denied
			if reply.Value.Int == 1 {
				outcome = quorum.Granted
			}
		}
		if votes.Record(node, outcome) != quorum.Pending {
			break
		}
	}
	return votes.Verdict()
}
