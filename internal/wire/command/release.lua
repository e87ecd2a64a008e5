local keys, tokens, stay = KEYS, ARGV, ARGV[#KEYS + 1]
local held = redis.call('MGET', unpack(keys))
local n, i = #keys, 1
while i <= n and held[i] == tokens[i] do i = i + 1 end
if i > n and not stay then
  redis.call('DEL', unpack(keys))
  return n
end
local mine, out = {}, {}
for i = 1, n do
  if held[i] == tokens[i] then
    mine[#mine + 1] = keys[i]
    out[i] = 1
  else
    out[i] = 0
  end
end
if stay then
  for _, key in ipairs(mine) do
    local left = redis.call('PTTL', key)
    if left < 0 or left > tonumber(stay) then redis.call('PEXPIRE', key, stay) end
  end
elseif #mine > 0 then
  redis.call('DEL', unpack(mine))
end
return out
