local queue, ticket, id, way = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local alone, head, behind = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local gap, every = ARGV[6], ARGV[7]
local prefix = string.sub(ticket, 1, -#id - 1)
if way == 'again' or way == 'leave' then
  redis.call('ZREM', queue, id)
  redis.call('DEL', ticket)
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
local others = redis.call('ZCARD', queue) - 1
local left = 0
if first and first ~= id then
  left = redis.call('PTTL', prefix .. first)
  if left > head then
    redis.call('PEXPIRE', prefix .. first, head)
    left = head
  end
end
if way == 'leave' then return {0, others + 1, 0, left} end
local lease, is = behind, 0
if first == 'gap' then
  is, others = 2, others - 1
elseif first == id then
  is = 1
  if others == 0 then lease = alone else lease = head end
end
redis.call('SET', ticket, '', 'PX', lease)
redis.call('PEXPIRE', queue, math.max(lease, behind) + head)
return {is, others, lease, left}
