local call, keys, argv, restores = redis.call, KEYS, ARGV, ARGV[at] == '1'
local there, left = call('MGET', unpack(keys, first)), {} -- a set is nil here
for i = first, #keys, 2 do
  local j, key = i - first + 1, keys[i]
  if there[j] then
    left[key] = -1
  elseif restores or not there[j + 1] then
    left[key] = call('PTTL', key) -- before TIME: no key ends after now + left
  end
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local prunes = time[2] % 16 == 0
local function text(ms) return string.format('%.0f', ms) end -- 1.79e+12 would be no integer
local out, all, a, added = {}, true, at + 1, nil
for i = first, #keys, 2 do
  local key, n, rest, said = keys[i], tonumber(argv[a]), left[keys[i]], 2
  if rest == -1 then
    said = 0
  elseif rest then
    local add, last, ttl, ends = {}, 0, nil, nil
    for j = 1, 2 * n, 2 do
      if argv[a + j + 1] ~= ttl then
        ttl = argv[a + j + 1]
        ends = now + 1 + ttl
        last = math.max(last, ends)
        ends = text(ends)
      end
      add[j], add[j + 1] = ends, argv[a + j]
    end
    if rest == -2 then -- PEXPIREAT fails before ZADD where it is not allowed
      -- A full node refuses this, which adds nothing. After another write it would refuse no member.
      if not added then call('ZADD', key, 'XX', ends, argv[a + 1]) end
      call('PEXPIREAT', key, ends)
    end
    added = redis.pcall('ZADD', key, 'NX', unpack(add))
    if type(added) == 'table' then
      if not added.err:find('WRONGTYPE', 1, true) then return added end
      said = 0
    else
      said = 1
      if added < n or prunes and rest ~= -2 then call('ZREMRANGEBYSCORE', key, '-inf', text(now)) end
      if added < n then -- some were there: one that has ended gives way, a later end stays
        call('ZADD', key, 'NX', unpack(add))
        last = 0
      end
      local most = last
      if last <= now + math.max(rest, 0) then most = tonumber(call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]) end
      if most == last or last == 0 then call('PEXPIREAT', key, text(most)) end
      left[key] = most - now -- it may be named again
    end
  end
  all = all and said == 1
  for _ = 1, n do out[#out + 1] = said end
  a = a + 1 + 2 * n
end
return all and #out or out
