-- Moves ARGV[1] from one account to another when there is as much; what both hold then.
local amount = tonumber(ARGV[1])
local from = tonumber(redis.call('GET', KEYS[1]) or '0')
if from < amount then
  return redis.error_reply('POOR ' .. KEYS[1] .. ' has ' .. from)
end
-- Read before it is written, so that a transfer at the same time would be lost.
local to = tonumber(redis.call('GET', KEYS[2]) or '0')
redis.call('SET', KEYS[1], from - amount)
redis.call('SET', KEYS[2], to + amount)
return {from - amount, to + amount}
