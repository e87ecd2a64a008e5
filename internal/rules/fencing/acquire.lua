local call, tonumber = redis.call, tonumber
local won = {} -- tokens and names that are granted, and recorded with one command
local function record()
  if #won > 0 then call('ZADD', set, unpack(won)) end
  won = {}
end
local floor
local function least(key) -- E
  floor = floor or tonumber(call('ZSCORE', set, 'floor') or 0)
  return math.max(tonumber(call('ZSCORE', set, 'k' .. key) or 0), floor)
end
-- A token above the largest of all is above E: its key needs no read.
local top = tonumber(call('ZREVRANGE', set, 0, 0, 'WITHSCORES')[2])
for i = 1, n do
  local key, a = KEYS[i + 1], 4 * i - 2
  local first, last = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
  if first < 1 or last < first or last > 9007199254740991 then
    out[i] = {9, ''}
  else
    local e = first <= top and least(key) or top
    if first <= e and not call('MGET', key)[1] then
      out[i] = {e == floor and 4 or 3, string.format('%.0f', e)}
    elseif first > e and call('SET', key, ARGV[a + 2], 'NX', 'PX', ARGV[a + 3]) then
      won[#won + 1], won[#won + 2] = ARGV[a + 1], 'k' .. key
      out[i] = 1
    else
      record() -- the key may have been won in this call
      out[i] = {2, string.format('%.0f', least(key))}
    end
  end
end
record()
return out
