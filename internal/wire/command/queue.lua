local queue, ticket, id, way = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local alone, head, behind = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local gap, every = ARGV[6], ARGV[7]
local prefix = string.sub(ticket, 1, -#id - 1)
local function shares(place) return string.byte(place) == 114 end -- 'r'
if way == 'again' or way == 'leave' then
  local other = 'r' .. id
  if shares(id) then other = string.sub(id, 2) end
  redis.call('ZREM', queue, id, other)
  redis.call('DEL', ticket, prefix .. other)
end
if way ~= 'leave' then
  local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0
  redis.call('ZADD', queue, 'NX', last + 1, id)
end
if way == 'gap' and redis.call('SET', string.sub(queue, 1, -6) .. 'gap', '', 'NX', 'PX', every) then
  redis.call('ZADD', queue, redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2] - 1, 'gap')
  redis.call('SET', prefix .. 'gap', '', 'PX', gap)
end
local first = redis.call('ZRANGE', queue, 0, 0)[1]
while first and first ~= id and redis.call('EXISTS', prefix .. first) == 0 do
  redis.call('ZREM', queue, first)
  first = redis.call('ZRANGE', queue, 0, 0)[1]
end
if way == 'leave' and first == 'gap' and redis.call('ZCARD', queue) == 1 then
  redis.call('DEL', queue, prefix .. first)
  first = nil
end
local places = {first}
if first and (shares(first) or shares(id)) then places = redis.call('ZRANGE', queue, 0, -1) end
local all, exclusive, left, turn, front, inTurn = redis.call('ZCARD', queue), 0, 0, false, true, {}
for i, place in ipairs(places) do -- front: all before are in turn, and share
  local reader = shares(place)
  if i > 1 and front and not reader and place ~= id and redis.call('EXISTS', prefix .. place) == 0 then
    redis.call('ZREM', queue, place)
    all = all - 1
  else
    local is = front and (i == 1 or reader)
    if place == id then
      turn = is
    else
      if not reader and place ~= 'gap' then exclusive = exclusive + 1 end
      if is then inTurn[#inTurn + 1] = place end
    end
    front = front and reader
  end
end
local wanted = exclusive > 0 or not shares(first or '') or not shares(id) and way ~= 'leave'
for i, place in ipairs(inTurn) do -- rung where they do not know that they are in turn, or that others wait for them
  local lives = redis.call('PTTL', prefix .. place)
  if lives > head and (wanted or lives <= behind) then
    redis.call('PEXPIRE', prefix .. place, head)
    lives = head
  end
  if i == 1 and not turn then left = lives end
end
local others = all - 1
if way == 'leave' then others = all end
if first == 'gap' then others = others - 1 end
if shares(id) then others = exclusive end
if way == 'leave' then return {0, others, 0, left} end
local lease, is = behind, 0
if first == 'gap' then
  is = 2
elseif turn then
  is = 1
  if all == 1 or shares(id) and exclusive == 0 then lease = alone else lease = head end
end
redis.call('SET', ticket, '', 'PX', lease)
redis.call('PEXPIRE', queue, math.max(lease, behind) + head)
return {is, others, lease, left}
