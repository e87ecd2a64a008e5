local held = redis.call('MGET', unpack(KEYS))
local mine, out = {}, {}
for i = 1, #KEYS do
  if held[i] == ARGV[i] then
    mine[#mine + 1] = KEYS[i]
    out[i] = 1
  else
    out[i] = 0
  end
end
if #mine > 0 then redis.call('DEL', unpack(mine)) end
return out
