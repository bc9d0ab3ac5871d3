-- Every kind of value that a script can return without RESP3.
return {
  42, 2.9, -7, 'text', redis.status_reply('FINE'), {1, {'nested', KEYS[1]}}, false, true,
  cjson.encode({a = {1, 2}}), tostring(#ARGV),
}
