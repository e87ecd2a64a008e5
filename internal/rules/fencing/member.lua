local set, verb, me = KEYS[1], ARGV[1], ARGV[2]
local marker = redis.call('ZRANGEBYSCORE', set, -1, -1)[1] or ''
local fleet, run = me:match('^([^:]*):?(.*)$')
local names, life = marker:match('^active:([^:]*):([^:]*)')
local any, all, nonce = false, true, ''
for name in (names or ''):gmatch('[^+]+') do
  if ('+' .. fleet .. '+'):find('+' .. name .. '+', 1, true) then any = true else all = false end
end
if names and not (all or any and life ~= run) then return {7, marker} end
local active = names and life == run
local mine = (active and 'active:' .. names or 'prov') .. ':' .. run .. ':'
if marker:sub(1, #mine) == mine then nonce = marker:sub(#mine + 1) end

local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function raise(x)
  if tonumber(x) > 9007199254740991 then return {9, ''} end
  if tonumber(x) > tonumber(redis.call('ZSCORE', set, 'floor') or 0) then
    redis.call('ZADD', set, x, 'floor') -- one that is not allowed must fail before tokens go
    redis.call('ZREMRANGEBYSCORE', set, 0, x)
    redis.call('ZADD', set, x, 'floor')
  end
  return {1, ''}
end
local function mark(member)
  redis.call('ZREMRANGEBYSCORE', set, -1, -1)
  redis.call('ZADD', set, -1, member)
  marker = member
end

local function two(nonce) return nonce:match('^[^/]*%+[^/]*/') end

local function show()
  local top = redis.call('ZREVRANGE', set, 0, 0, 'WITHSCORES')[2] or 0
  return {1, string.format('%.0f ', math.max(tonumber(top), 0)) .. marker}
end

if verb == 'rejoin' and nonce ~= '' and nonce == ARGV[3] then
  local answer = raise(ARGV[4])
  if answer[1] == 1 then mark('active:' .. ARGV[5] .. ':' .. run) end
  return answer
elseif verb == 'show' or verb == 'read' and active then
  return show()
elseif active and verb == 'seal' then
  if names ~= fleet:match('%+(.*)') and (names ~= fleet or nonce == '') then
    mark('active:' .. me .. ':' .. ARGV[3] .. '.' .. string.format('%.0f', micros()))
  end
  return show()
elseif active and verb == 'raise' then
  return raise(ARGV[3])
elseif active and verb == 'collect' then
  return raise(string.format('%.0f', math.max(micros() - ARGV[3], 0)))
elseif active then
  return {6, ''}
elseif verb == 'notice' and (nonce == '' or two(ARGV[3]) and not two(nonce)) then
  nonce = ARGV[3] .. '.' .. string.format('%.0f', micros())
  mark(mine .. nonce)
elseif verb == 'resume' and names then
  mark('active:' .. names .. ':' .. run .. marker:sub(#('active:' .. names .. ':' .. life) + 1))
  return {1, ''}
end
return {5, nonce}
