local set, me, n = KEYS[1], ARGV[1], #KEYS - 1
local out = {}
if not redis.call('ZSCORE', set, 'active:' .. me) then
  local marker = redis.call('ZRANGEBYSCORE', set, -1, -1)[1] or ''
  local fleet, run = me:match('^([^:]*):?(.*)$')
  local names, life = marker:match('^active:([^:]*):([^:]*)')
  local any, all, answer = false, true, nil
  for name in (names or ''):gmatch('[^+]+') do
    if ('+' .. fleet .. '+'):find('+' .. name .. '+', 1, true) then any = true else all = false end
  end
  if names and not (all or any and life ~= run) then
    answer = {7, marker}
  elseif not names or life ~= run then
    local mine = 'prov:' .. run .. ':'
    answer = {5, marker:sub(1, #mine) == mine and marker:sub(#mine + 1) or ''}
  end
  if answer then
    for i = 1, n do out[i] = answer end
    return out
  end
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
