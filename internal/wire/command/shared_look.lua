local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local from = string.format('(%.0f', now) -- others have ended
local all = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', from, 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local out = { tostring(redis.call('ZCOUNT', KEYS[1], from, '+inf')) }
local size = 0
for i = 1, #all, 2 do
  local line = string.format('%.0f', all[i + 1] - now) .. ' ' .. all[i]
  size = size + #line + 1
  if size > 4000 then break end -- a client bounds a reply
  out[#out + 1] = line
end
return table.concat(out, '\n')
