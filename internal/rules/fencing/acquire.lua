local call, keys, argv, sub = redis.call, KEYS, ARGV, string.sub
local spare, ttl, lasts = tonumber(argv[3]), argv[4] ~= '' and argv[4], argv[5]
local won, m, refused = {}, 0, false -- tokens and names that are granted, and recorded with one command
local function record()
  if m > 0 then call('ZADD', set, unpack(won, 1, m)) end
  m = 0
end
local function score(name) return tonumber(call('ZSCORE', set, name) or 0) end
local floor
local function least(name) -- E
  floor = floor or score('floor')
  return math.max(score(name), floor)
end
local function refuse(i, code, e) out[i], refused = {code, e and string.format('%.0f', e) or ''}, true end
-- Most calls exceed all that is recorded. A key without a score from the least token on needs no read either.
local names = call('ZRANGEBYSCORE', set, argv[2], '+inf', 'LIMIT', 0, n)
local recent, any = {}, #names == n or argv[2] == '0'
for i = 1, #names do recent[names[i]] = true end
any = any or recent.floor
for i = 1, n do
  local key = keys[i + 1]
  local name, last, first, e = 'k' .. key, sub(lasts, 16 * i - 15, 16 * i), 1, 0
  if any or recent[name] then first, e = tonumber(last) - spare, least(name) end
  if last > '9007199254740991' or first < 1 then
    refuse(i, 9)
  elseif first > e and call('SET', key, argv[i + 5], 'NX', 'PX', ttl or argv[n + i + 5]) then
    won[m + 1], won[m + 2] = last, name
    m = m + 2
  elseif first <= e and not call('MGET', key)[1] then
    refuse(i, e == floor and 4 or 3, e)
  else
    record() -- the key may have been won in this call
    refuse(i, 2, least(name))
  end
end
record()
if not refused then return n end
for i = 1, n do out[i] = out[i] or 1 end
return out
