local set, me, n = KEYS[1], ARGV[1], #KEYS - 1
local out = {}
if not redis.call('ZSCORE', set, 'active:' .. me) then
  local answer = {5, ''}
  local marker = redis.call('ZRANGEBYSCORE', set, -1, -1)[1] or ''
  local mine = 'prov:' .. me .. ':'
  if marker ~= '' and marker:match('^%a+:([^:]*)') ~= me:match('^[^:]*') then
    answer = {7, marker}
  elseif marker:sub(1, #mine) == mine then
    answer[2] = marker:sub(#mine + 1)
  end
  for i = 1, n do out[i] = answer end
  return out
end
local floor = tonumber(redis.call('ZSCORE', set, 'floor') or 0)
for i = 1, n do
  local key, a = KEYS[i + 1], 4 * i - 2
  local first, last = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
  local e = math.max(tonumber(redis.call('ZSCORE', set, 'k' .. key) or 0), floor)
  if first < 1 or last < first or last > 9007199254740991 then
    out[i] = {9, ''}
  elseif redis.call('EXISTS', key) == 1 then
    out[i] = {2, string.format('%.0f', e)}
  elseif first <= e then
    out[i] = {3, string.format('%.0f', e)}
  else
    redis.call('ZADD', set, ARGV[a + 1], 'k' .. key)
    redis.call('SET', key, ARGV[a + 2], 'PX', ARGV[a + 3])
    out[i] = 1
  end
end
return out
