-- Scripts of lock libraries that the parser refuses rightly, and that hold a lock all the same: each hash is
-- that of a text of its library, and the text below it is a lock script that does the same for the library.

-- bsm/redislock 0.9, Obtain. The value is a token and the metadata of the caller. The library compares the token
-- alone, and this the whole: an Obtain by the same token with other metadata is refused.
-- alias 80a1b5f2cfccec3b7119ba7721d2127682b691a7
if redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[3]) then return redis.status_reply("OK") end
if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[3]) end

-- bsm/redislock 0.10, Obtain. An Obtain of several keys by the token that holds them is refused.
-- alias eb0c00d98f6f33b4262419a509002884540f30be
local held = 0
for _, key in ipairs(KEYS) do held = held + redis.call("exists", key) end
if held == 0 then
	for _, key in ipairs(KEYS) do redis.call("set", key, ARGV[1], "PX", ARGV[3]) end
	return redis.status_reply("OK")
end
if #KEYS > 1 then return false end
if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[3]) end
return false

-- bsm/redislock 0.10, TTL: of one key.
-- alias 66e1084c2d842a7e8c271925aae90219fac4e129
for _, key in ipairs(KEYS) do if redis.call("get", key) ~= ARGV[1] then return false end end
return redis.call("pttl", KEYS[1])

-- bsm/redislock 0.10, Refresh.
-- alias 5a22d7e8431313862816d4416b5e46dd70fc340d
for _, key in ipairs(KEYS) do if redis.call("get", key) ~= ARGV[1] then return false end end
for _, key in ipairs(KEYS) do redis.call("pexpire", key, ARGV[2]) end
return redis.status_reply("OK")

-- bsm/redislock 0.10, Release.
-- alias 9470c810040e272ee6c579d8d4331aaf6332a7b1
for _, key in ipairs(KEYS) do if redis.call("get", key) ~= ARGV[1] then return false end end
for _, key in ipairs(KEYS) do redis.call("del", key) end
return redis.status_reply("OK")

-- redlock-universal 0.8.5, extension if enough is left (ARGV[2]). What is left is not compared here: the lock is
-- extended as long as it is held.
-- alias c000e088bd4aca36ab429d3b7a16fc736f4cb6f1
local left = redis.call("pttl", KEYS[1])
if redis.call("get", KEYS[1]) == ARGV[1] then redis.call("pexpire", KEYS[1], ARGV[3]) return {1, left} end
return {-1, left}

-- node-redis-warlock 1.0, touch. It passes the TTL and the value as KEYS: one of these is a key.
-- alias 78d3bb55c589f1b2edf66f3527f5017f8dfcd6bb keys=1
if redis.call("get", KEYS[1]) == ARGV[2] then return redis.call("set", KEYS[1], ARGV[2], "PX", ARGV[1], "XX") end
return 0

-- Symfony 5.2 to 7.1, RedisStore, whether scripts may ask for the time; then its locks by the time of the server,
-- and of the client. Locks for reading (saveRead) are not among them.
-- alias c481d49b4a48e48a9eeacd5d51655b5fcbb19925
redis.call("exists", KEYS[1])
return 1

-- alias 6fdee501a3714553b74c0d67687b921b90b05d18
if redis.call("set", KEYS[1], ARGV[2], "NX", "PX", ARGV[3]) then return true end
if redis.call("get", KEYS[1]) == ARGV[2] then redis.call("pexpire", KEYS[1], ARGV[3]) return true end
return false

-- alias abdbb1413a25737fc4cfb9cf79ace1a22dad6ab3
if redis.call("set", KEYS[1], ARGV[2], "NX", "PX", ARGV[3]) then return true end
if redis.call("get", KEYS[1]) == ARGV[2] then redis.call("pexpire", KEYS[1], ARGV[3]) return true end
return false

-- alias 63be12a3515941092212f15c08327d60916de9fa
if redis.call("get", KEYS[1]) == ARGV[2] then redis.call("pexpire", KEYS[1], ARGV[3]) return true end
return false

-- alias fe7bee082a8220c6b621ace999a1ab57c4ab5145
if redis.call("get", KEYS[1]) == ARGV[2] then redis.call("pexpire", KEYS[1], ARGV[3]) return true end
return false

-- alias a70f7f5087a0cb2c2c9ca50d1f64e234c2628f0c
if redis.call("get", KEYS[1]) == ARGV[1] then redis.call("del", KEYS[1]) return true end
return false

-- alias 3b6bdbbe16f821f49177b16c7707f331f015a779
return redis.call("get", KEYS[1]) == ARGV[2]

-- alias e27f94ac94f5d96f23f2e8697462233b6349a566
return redis.call("get", KEYS[1]) == ARGV[2]
