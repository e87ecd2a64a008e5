local set, verb, me = KEYS[1], ARGV[1], ARGV[2]
local marker = redis.call('ZRANGEBYSCORE', set, -1, -1)[1] or ''
local mine = 'prov:' .. me .. ':'
if marker ~= '' and marker:match('^%a+:([^:]*)') ~= me:match('^[^:]*') then return {7, marker} end
local active = marker == 'active:' .. me
local nonce = ''
if marker:sub(1, #mine) == mine then nonce = marker:sub(#mine + 1) end

local function raise(x)
  if tonumber(x) > tonumber(redis.call('ZSCORE', set, 'floor') or 0) then
    redis.call('ZADD', set, x, 'floor') -- one that is not allowed must fail before tokens go
    redis.call('ZREMRANGEBYSCORE', set, 0, x)
    redis.call('ZADD', set, x, 'floor')
  end
end
local function mark(member)
  redis.call('ZREMRANGEBYSCORE', set, -1, -1)
  redis.call('ZADD', set, -1, member)
end

if verb == 'notice' then
  if active then return {6, ''} end
  if nonce == '' then
    local time = redis.call('TIME')
    nonce = ARGV[3] .. '.' .. string.format('%.0f', time[1] * 1000000 + time[2])
    mark(mine .. nonce)
  end
  return {5, nonce}
elseif verb == 'rejoin' then
  if active then return {6, ''} end
  if nonce == '' or nonce ~= ARGV[3] then return {5, nonce} end
  if tonumber(ARGV[4]) > 9007199254740991 then return {9, ''} end
  raise(ARGV[4])
  mark('active:' .. me)
  return {1, ''}
end

if not active then return {5, nonce} end
if verb == 'read' then
  local top = redis.call('ZREVRANGE', set, 0, 0, 'WITHSCORES')[2]
  return {1, string.format('%.0f', math.max(tonumber(top), 0))}
end
if tonumber(ARGV[3]) > 9007199254740991 then return {9, ''} end
raise(ARGV[3])
return {1, ''}
