local set, verb, me = KEYS[1], ARGV[1], ARGV[2]
local marker = redis.call('ZRANGEBYSCORE', set, -1, -1)[1] or ''
local fleet, run = me:match('^([^:]*):?(.*)$')
local names, life = marker:match('^active:([^:]*):([^:]*)')
local any, all, nonce = false, true, ''
for name in (names or ''):gmatch('[^+]+') do
  if ('+' .. fleet .. '+'):find('+' .. name .. '+', 1, true) then any = true else all = false end
end
local active = names and life == run
local mine = (active and 'active:' .. names or 'prov') .. ':' .. run .. ':'
if marker:sub(1, #mine) == mine then nonce = marker:sub(#mine + 1) end

local function micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function shown(code) -- each answer shows the node
  local top = redis.call('ZREVRANGE', set, 0, 0, 'WITHSCORES')[2] or 0
  local made, age = not active and verb == 'show' and nonce:match('%.(%d+)$'), ''
  if made then age = string.format(' %.0f', math.max(micros() - made, 0)) end
  return {code, string.format('%.0f ', math.max(tonumber(top), 0)) .. marker .. age}
end
if nonce ~= '' and not active and micros() + (redis.call('ZSCORE', set, 'noticed') or 0) > 10000000 then
  marker, nonce = '', '' -- a notice that its clients have not repeated for 10 s is none
end
local function raise(x)
  if tonumber(x) > 9007199254740991 then return 9 end
  if tonumber(x) > tonumber(redis.call('ZSCORE', set, 'floor') or 0) then
    redis.call('ZREMRANGEBYSCORE', set, '(0', '(0') -- removes none; after a write a full node refuses no ZADD
    redis.call('ZADD', set, x, 'floor') -- one that is not allowed must fail before tokens go
    redis.call('ZREMRANGEBYSCORE', set, 0, x)
    redis.call('ZADD', set, x, 'floor')
  end
  return 1
end
local function mark(member)
  redis.call('ZREMRANGEBYSCORE', set, '-inf', -1)
  redis.call('ZADD', set, -1, member)
  marker = member
  return 1
end
local function made() return ARGV[3] .. '.' .. string.format('%.0f', micros()) end
local function two(nonce) return nonce:match('^[^/]*%+[^/]*/') end

if names and not (all or any and life ~= run) then return shown(7) end
local code = active and 6 or 5
if verb == 'rejoin' and nonce ~= '' and nonce == ARGV[3] then
  code = raise(ARGV[4])
  if code == 1 then mark('active:' .. ARGV[5] .. ':' .. run) end
elseif verb == 'show' or verb == 'read' and active then
  code = 1
elseif active and verb == 'seal' then
  if names ~= fleet:match('%+(.*)') and (names ~= fleet or nonce == '') then mark('active:' .. me .. ':' .. made()) end
  code = 1
elseif active and verb == 'raise' then
  code = raise(ARGV[3])
elseif active and verb == 'collect' then
  code = raise(string.format('%.0f', math.max(micros() - ARGV[3], 0)))
elseif verb == 'resume' and names and not active then
  code = mark('active:' .. names .. ':' .. run .. marker:sub(#('active:' .. names .. ':' .. life) + 1))
elseif not active and (verb == 'notice' or verb == 'resume') then
  if nonce == '' or two(ARGV[3]) and not two(nonce) then mark(mine .. made()) end
  if marker:match('^([^/]*)/', #mine + 1) == fleet then
    redis.call('ZREMRANGEBYSCORE', set, '-inf', '(-1') -- after a write a full node refuses no ZADD
    redis.call('ZADD', set, string.format('%.0f', -micros()), 'noticed')
  end
end
return shown(code)
