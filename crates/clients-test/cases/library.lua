#!lua name=accounts

local function transfer(keys, args)
  redis.call('DECRBY', keys[1], args[1])
  return redis.call('INCRBY', keys[2], args[1])
end

local function balance(keys)
  return redis.call('GET', keys[1])
end

redis.register_function('transfer', transfer)
redis.register_function{function_name = 'balance', callback = balance, flags = {'no-writes'}}
