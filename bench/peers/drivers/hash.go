package drivers

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlock-go/redlock/bench/harness"
)

// Hash is a read/write lock on the first of the nodes by the design of Redisson's: a hash at the key has the mode and
// a counter for each holder, and beside it there is a key for each reader, with its end. A release sets the end of the
// hash to the last of these, and is published when it is the last. Those who are refused subscribe, and ask again then, or
// when the hash ends. It has no renewals and is written here, on rueidis: Redisson is for Java.
type Hash struct{}

func (Hash) Name() string { return "hash" }

func (Hash) Weaker() string { return "one server" }

func (Hash) Shares() {}

func (Hash) Open(_ context.Context, cfg harness.Config) (harness.Session, error) {
	client, err := rueidis.NewClient(rueidisOptions(cfg.Nodes[0]))
	if err != nil {
		return nil, err
	}
	return &hashes{client: client, cfg: cfg, id: rand.Text(), channels: map[string]*hashChannel{}}, nil
}

// The scripts. KEYS: the hash, the prefix of readers' ends. ARGV: the holder, the TTL or the channel.
var (
	hashRead = rueidis.NewLuaScript(`
local mode = redis.call("HGET", KEYS[1], "mode")
if mode == "write" then return redis.call("PTTL", KEYS[1]) end
if not mode then redis.call("HSET", KEYS[1], "mode", "read") end
local nth = redis.call("HINCRBY", KEYS[1], ARGV[1], 1)
redis.call("SET", KEYS[2] .. ARGV[1] .. ":" .. nth, 1, "PX", ARGV[2])
if redis.call("PTTL", KEYS[1]) < tonumber(ARGV[2]) then redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
return nil`)

	hashReadEnd = rueidis.NewLuaScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return 0 end
local left = redis.call("HINCRBY", KEYS[1], ARGV[1], -1)
redis.call("DEL", KEYS[2] .. ARGV[1] .. ":" .. left + 1)
if left == 0 then redis.call("HDEL", KEYS[1], ARGV[1]) end
local last, all = 0, redis.call("HGETALL", KEYS[1])
for i = 1, #all, 2 do
  for nth = 1, tonumber(all[i + 1]) or 0 do
    last = math.max(last, redis.call("PTTL", KEYS[2] .. all[i] .. ":" .. nth))
  end
end
if last > 0 then
  redis.call("PEXPIRE", KEYS[1], last)
else
  redis.call("DEL", KEYS[1])
  redis.call("PUBLISH", ARGV[2], "one")
end
return 1`)

	hashWrite = rueidis.NewLuaScript(`
if redis.call("EXISTS", KEYS[1]) == 1 then return redis.call("PTTL", KEYS[1]) end
redis.call("HSET", KEYS[1], "mode", "write", ARGV[1], 1)
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return nil`)

	hashWriteEnd = rueidis.NewLuaScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call("DEL", KEYS[1])
redis.call("PUBLISH", ARGV[2], "all")
return 1`)
)

// hashes is a client, and the channels that its callers wait at.
type hashes struct {
	client   rueidis.Client
	cfg      harness.Config
	id       string
	callers  atomic.Int64
	mu       sync.Mutex
	channels map[string]*hashChannel // by key
}

// hashChannel is a channel with waiting callers. Permits are what its messages allow: the last reader's lets one ask again,
// a writer's all.
type hashChannel struct {
	waiting    int // guarded by hashes.mu
	permits    chan struct{}
	subscribed chan struct{}
	cancel     context.CancelFunc
}

func (h *hashes) Close() error { h.client.Close(); return nil }

func (h *hashes) Worker() (harness.Worker, error) {
	w := &hashWorker{hashes: h, holder: h.id + ":" + strconv.FormatInt(h.callers.Add(1), 10), take: hashWrite, give: hashWriteEnd}
	if h.cfg.Share {
		w.take, w.give = hashRead, hashReadEnd
	}
	return w, nil
}

// join has the caller wait at the channel of a key, which exists while one does.
func (h *hashes) join(key string) *hashChannel {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[key]
	if c == nil {
		c = &hashChannel{permits: make(chan struct{}, 1<<12), subscribed: make(chan struct{})}
		h.channels[key] = c
		var ctx context.Context
		ctx, c.cancel = context.WithCancel(context.Background())
		var once sync.Once
		ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
			if s.Kind == "subscribe" {
				once.Do(func() { close(c.subscribed) })
			}
		})
		go func() {
			_ = h.client.Receive(ctx, h.client.B().Subscribe().Channel(channelOf(key)).Build(), func(m rueidis.PubSubMessage) {
				n := 1
				if m.Message == "all" {
					h.mu.Lock()
					n = c.waiting
					h.mu.Unlock()
				}
				for range n {
					select {
					case c.permits <- struct{}{}:
					default:
					}
				}
			})
		}()
	}
	c.waiting++
	return c
}

func (h *hashes) leave(key string, c *hashChannel) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.waiting--
	if c.waiting == 0 {
		c.cancel()
		delete(h.channels, key)
	}
}

func channelOf(key string) string { return "rwlock:{" + key + "}" }

// hashWorker is a [harness.Worker].
type hashWorker struct {
	*hashes
	holder, key string
	take, give  *rueidis.Lua
}

func (c *hashWorker) keys(key string) []string { return []string{key, "{" + key + "}:end:"} }

// try returns nothing left if the lock is there.
func (c *hashWorker) try(ctx context.Context) (left time.Duration, held bool, err error) {
	ms, err := c.take.Exec(ctx, c.client, c.keys(c.key), []string{c.holder, strconv.FormatInt(c.cfg.TTL.Milliseconds(), 10)}).AsInt64()
	if rueidis.IsRedisNil(err) {
		return 0, true, nil
	}
	return time.Duration(ms) * time.Millisecond, false, err
}

func (c *hashWorker) Acquire(ctx context.Context, key string) (bool, error) {
	c.key = key
	_, held, err := c.try(ctx)
	if held || err != nil || c.cfg.Scenario != harness.Contended {
		return held, err
	}
	channel := c.join(key)
	defer c.leave(key, channel)
	select {
	case <-channel.subscribed:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	for {
		left, held, err := c.try(ctx)
		if held || err != nil {
			return held, err
		}
		late := time.NewTimer(max(left, time.Millisecond))
		select {
		case <-channel.permits:
		case <-late.C:
		case <-ctx.Done():
		}
		late.Stop()
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
}

func (c *hashWorker) Release(ctx context.Context) error {
	n, err := c.give.Exec(ctx, c.client, c.keys(c.key), []string{c.holder, channelOf(c.key)}).AsInt64()
	if err == nil && n == 0 {
		err = errNotHeld
	}
	return err
}
