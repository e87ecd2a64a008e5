package drivers

import (
	"context"
	"fmt"

	"github.com/go-redsync/redsync/v4/redis"

	"github.com/redlock-go/redlock/internal/command"
)

// embeddedPool lets redsync run on the embedded masters, which have no Lua and
// know only our own release script: it is put in the place of redsync's, which
// does the same.
type embeddedPool struct{ redis.Pool }

// Get implements [redis.Pool].
func (p embeddedPool) Get(ctx context.Context) (redis.Conn, error) {
	c, err := p.Pool.Get(ctx)
	if err != nil {
		return nil, err
	}
	return embeddedConn{c}, nil
}

type embeddedConn struct{ redis.Conn }

var ourRelease = redis.NewScript(1, command.ReleaseScript, command.ReleaseSHA1)

// Eval implements [redis.Conn].
func (c embeddedConn) Eval(_ *redis.Script, keysAndArgs ...any) (any, error) {
	reply, err := c.Conn.Eval(ourRelease, keysAndArgs...)
	if err != nil {
		return nil, err
	}
	if each, ok := reply.([]any); ok && len(each) == 1 {
		return each[0], nil
	}
	return nil, fmt.Errorf("release answered %v", reply)
}
