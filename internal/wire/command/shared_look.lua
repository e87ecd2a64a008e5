local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local from = string.format('(%.0f', now) -- others have ended
local all = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', from, 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local out = { tostring(redis.call('ZCOUNT', KEYS[1], from, '+inf')) }
for i = 1, #all, 2 do
  out[#out + 1] = string.format('%.0f', all[i + 1] - now) .. ' ' .. all[i]
end
return table.concat(out, '\n')
