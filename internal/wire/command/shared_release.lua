local out, all, a = {}, true, 1
for _, key in ipairs(KEYS) do
  local n, removed = tonumber(ARGV[a]), 0
  for j = a + 1, a + n do
    local gone = redis.pcall('ZREM', key, ARGV[j])
    if type(gone) == 'table' then
      if not gone.err:find('WRONGTYPE', 1, true) then return gone end
      gone = 0
    end
    removed = removed + gone
    out[#out + 1] = gone
  end
  all = all and removed == n
  if removed > 0 then
    local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]
    -- It deletes a key whose members have ended.
    if last then redis.call('PEXPIREAT', key, string.format('%.0f', last)) end
  end
  a = a + 1 + n
end
return all and #out or out
