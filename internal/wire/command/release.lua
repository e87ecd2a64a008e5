local keys, tokens = KEYS, ARGV
local held = redis.call('MGET', unpack(keys))
local n, i = #keys, 1
while i <= n and held[i] == tokens[i] do i = i + 1 end
if i > n then
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
if #mine > 0 then redis.call('DEL', unpack(mine)) end
return out
