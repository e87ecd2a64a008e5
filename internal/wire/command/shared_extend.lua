local keys, argv, time = KEYS, ARGV, redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local out, all, a = {}, true, at
for i = first, #keys do
  local key, n, add, known, most = keys[i], tonumber(argv[a]), {}, {}, 0
  for j = a + 1, a + 2 * n, 2 do
    local token, ok = argv[j], 0
    local has = known[token] or redis.pcall('ZSCORE', key, token) -- one may be extended twice
    if type(has) == 'table' then
      if not has.err:find('WRONGTYPE', 1, true) then return has end
    elseif has and tonumber(has) > now then
      local ends = now + 1 + argv[j + 1]
      if ends > tonumber(has) then
        add[#add + 1], add[#add + 2], known[token] = string.format('%.0f', ends), token, ends
        most = math.max(most, ends)
      end
      ok = 1
    end
    all = all and ok == 1
    out[#out + 1] = ok
  end
  if #add > 0 then
    local last = tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2])
    redis.call('PEXPIREAT', key, string.format('%.0f', math.max(last, most))) -- after it a full node refuses no ZADD
    redis.call('ZADD', key, 'XX', unpack(add))
  end
  a = a + 1 + 2 * n
end
return all and #out or out
