-- Moves ARGV[1] from account KEYS[1] to account KEYS[2], and returns both balances.
local amount = tonumber(ARGV[1])
local from = tonumber(redis.call('GET', KEYS[1]) or '0')
if from < amount then
  return redis.error_reply('POOR ' .. KEYS[1] .. ' has ' .. from)
end
return {redis.call('DECRBY', KEYS[1], amount), redis.call('INCRBY', KEYS[2], amount)}
