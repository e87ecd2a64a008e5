package drivers

import (
	"context"
	"fmt"
	"net"
	"time"

	redsync "github.com/go-redsync/redsync/v4/redis"
	"github.com/redis/rueidis"
)

// Rueidis makes redsync's pool out of a client of rueidis, which has few
// connections and pipelines what goroutines ask for at the same time. So there
// is no pool to size.
var Rueidis = Pool{name: "rueidis", dial: func(_ context.Context, addr string, _ int) (redsync.Pool, func() error, error) {
	client, err := rueidis.NewClient(rueidisOptions(addr))
	if err != nil {
		return nil, nil, err
	}
	return rueidisPool{client}, well(client.Close), nil
}}

// rueidisOptions are those of a plain client. Nothing is ever read that could
// be cached, and repeats are off as with the others.
func rueidisOptions(addr string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:       []string{addr},
		ForceSingleClient: true,
		DisableCache:      true,
		DisableRetry:      true,
		Dialer:            net.Dialer{Timeout: timeout},
		ConnWriteTimeout:  timeout,
	}
}

// rueidisPool stands in for redsync's own adapter, which goes through
// rueidiscompat, a module that cannot be had in the version that belongs to
// rueidis v1.0.79. It asks rueidis directly, so it is if anything faster.
type rueidisPool struct{ client rueidis.Client }

func (p rueidisPool) Get(ctx context.Context) (redsync.Conn, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	return rueidisConn{p.client, ctx}, nil
}

// rueidisConn is a [redsync.Conn]. It is no connection: the client chooses one
// for each command.
type rueidisConn struct {
	client rueidis.Client
	ctx    context.Context
}

func (c rueidisConn) Get(name string) (string, error) {
	value, err := c.client.Do(c.ctx, c.client.B().Get().Key(name).Build()).ToString()
	return value, rueidisNil(err)
}

func (c rueidisConn) Set(name, value string) (bool, error) {
	err := c.client.Do(c.ctx, c.client.B().Set().Key(name).Value(value).Build()).Error()
	return err == nil, rueidisNil(err)
}

func (c rueidisConn) SetNX(name, value string, expiry time.Duration) (bool, error) {
	set := c.client.B().Set().Key(name).Value(value).Nx().PxMilliseconds(expiry.Milliseconds()).Build()
	err := c.client.Do(c.ctx, set).Error()
	return err == nil, rueidisNil(err)
}

func (c rueidisConn) PTTL(name string) (time.Duration, error) {
	ms, err := c.client.Do(c.ctx, c.client.B().Pttl().Key(name).Build()).AsInt64()
	return time.Duration(ms) * time.Millisecond, rueidisNil(err)
}

func (c rueidisConn) Eval(script *redsync.Script, keysAndArgs ...any) (any, error) {
	words := make([]string, len(keysAndArgs))
	for i, word := range keysAndArgs {
		if s, ok := word.(string); ok {
			words[i] = s
		} else {
			words[i] = fmt.Sprint(word)
		}
	}
	keys, args := words[:script.KeyCount], words[script.KeyCount:]
	call := c.client.B().Evalsha().Sha1(script.Hash).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
	reply := c.client.Do(c.ctx, call)
	if err, ok := rueidis.IsRedisErr(reply.Error()); ok && err.IsNoScript() {
		reply = c.client.Do(c.ctx, c.client.B().Eval().Script(script.Src).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	}
	value, err := reply.ToAny()
	return value, rueidisNil(err)
}

func (c rueidisConn) ScriptLoad(script *redsync.Script) (err error) {
	script.Hash, err = c.client.Do(c.ctx, c.client.B().ScriptLoad().Script(script.Src).Build()).ToString()
	return err
}

func (c rueidisConn) Close() error { return nil }

// rueidisNil is err, or nil if it stands for a missing value.
func rueidisNil(err error) error {
	if rueidis.IsRedisNil(err) {
		return nil
	}
	return err
}
