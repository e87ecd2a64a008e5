local out = {}
if not redis.call('ZSCORE', set, 'active:' .. me) and not redis.call('ZSCORE', set, ARGV[#ARGV]) then
  local marker = redis.call('ZRANGEBYSCORE', set, -1, -1)[1] or ''
  local fleet, run = me:match('^([^:]*):?(.*)$')
  local names, life = marker:match('^active:([^:]*):([^:]*)')
  local any, all = false, true
  for name in (names or ''):gmatch('[^+]+') do
    if ('+' .. fleet .. '+'):find('+' .. name .. '+', 1, true) then any = true else all = false end
  end
  if names and not (all or any and life ~= run) then
    return {7, marker}
  elseif not names or life ~= run then
    local mine = 'prov:' .. run .. ':'
    return {5, marker:sub(1, #mine) == mine and marker:sub(#mine + 1) or ''}
  end
end
