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
for i = 1, n do
  local key = KEYS[i + 1]
  if redis.call('MGET', key)[1] == ARGV[i + 1] and redis.call('PEXPIRE', key, ARGV[n + i + 1]) == 1 then
    out[i] = 1
  else
    out[i] = 8
  end
end
return out
