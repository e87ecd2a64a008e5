local call, queue, ticket, id, way = redis.call, KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local alone, head, behind = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local gap, every = ARGV[6], ARGV[7]
local prefix = string.sub(ticket, 1, -#id - 1)
local function shares(place) return string.byte(place) == 114 end -- 'r'
local function waits(place) return not shares(place) and place ~= 'gap' end
if way == 'part' then
  if call('MGET', KEYS[3])[1] ~= ARGV[8] then return {-1, 0, 0, 0} end
  call('ZREM', queue, id)
  call('DEL', ticket)
  local after = call('ZRANGE', queue, 0, 0)[1]
  if not after then return {0, 0, 0, 0} end
  if waits(after) and call('PEXPIRE', prefix .. after, head) == 1 then return {0, 1, 0, head} end
  way = 'leave'
elseif way == 'enter' and waits(id) then
  local tail = call('ZRANGE', queue, -2, -1, 'WITHSCORES')
  local before = #tail / 2
  if call('ZADD', queue, 'NX', (tail[2 * before] or 0) + 1, id) == 1 then
    local front = tail[1]
    if before == 2 then front = call('ZRANGE', queue, 0, 0)[1] end
    if not front or waits(front) and (before == 2 or call('PEXPIRE', prefix .. front, head) == 1) then
      local is, lease, left = 0, behind, head
      if not front then is, lease, left = 1, alone, 0 end
      call('SET', ticket, '', 'PX', lease)
      call('PEXPIRE', queue, lease + head)
      return {is, before, lease, left}
    end
  end
end
if way == 'again' or way == 'leave' then
  local other = 'r' .. id
  if shares(id) then other = string.sub(id, 2) end
  call('ZREM', queue, id, other)
  call('DEL', ticket, prefix .. other)
end
if way ~= 'leave' then
  local last = call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0
  call('ZADD', queue, 'NX', last + 1, id)
end
if way == 'gap' and call('SET', string.sub(queue, 1, -6) .. 'gap', '', 'NX', 'PX', every) then
  call('ZADD', queue, call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2] - 1, 'gap')
  call('SET', prefix .. 'gap', '', 'PX', gap)
end
local first = call('ZRANGE', queue, 0, 0)[1]
while first and first ~= id and call('PTTL', prefix .. first) == -2 do
  call('ZREM', queue, first)
  first = call('ZRANGE', queue, 0, 0)[1]
end
local places = call('ZRANGE', queue, 0, 2)
if way == 'leave' and first == 'gap' and #places == 1 then
  call('DEL', queue, prefix .. first)
  first, places = nil, {}
end
local all = #places -- three for more
if first and (shares(first) or shares(id)) then
  places = call('ZRANGE', queue, 0, -1)
  all = #places
else
  places = {first}
end
local exclusive, left, turn, front, inTurn = 0, 0, false, true, {}
for i, place in ipairs(places) do -- front: all before are in turn, and share
  local reader = shares(place)
  if i > 1 and front and not reader and place ~= id and call('PTTL', prefix .. place) == -2 then
    call('ZREM', queue, place)
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
  local lives = call('PTTL', prefix .. place)
  if lives > head and (wanted or lives <= behind) then
    call('PEXPIRE', prefix .. place, head)
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
call('SET', ticket, '', 'PX', lease)
call('PEXPIRE', queue, math.max(lease, behind) + head)
return {is, others, lease, left}
