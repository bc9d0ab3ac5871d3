// Scripts, in Lua and in the model.

package main

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
)

// batchScript calls the requests in its arguments, each after the number of its words, and returns
// their replies.
const batchScript = `
local replies, at = {}, 1
while at <= #ARGV do
  local words = tonumber(ARGV[at])
  replies[#replies + 1] = redis.pcall(unpack(ARGV, at + 1, at + words))
  at = at + words + 1
end
return replies`

// batchLibrary is the same as a function.
const batchLibrary = `#!lua name=lin
redis.register_function('batch', function(KEYS, ARGV)` + batchScript + `
end)`

// callers are the ways in which the server lets scripts be called.
func callers(server *session) ([]string, error) {
	var known []string
	for _, way := range []struct {
		caller string
		probe  []string
	}{
		{"EVAL", []string{"EVAL", "return 1", "0"}},
		{"EVALSHA", []string{"SCRIPT", "LOAD", batchScript}},
		{"FCALL", []string{"FUNCTION", "LOAD", "REPLACE", batchLibrary}},
	} {
		said, err := server.ask(way.probe...)
		if err != nil {
			return nil, err
		}
		if said.kind != kindError {
			known = append(known, way.caller)
		}
	}
	return known, nil
}

// Scripts that act on what they read. In a history they are commands of their own.
var scriptTexts = map[string]string{
	// Sets a key that holds what is expected.
	"script-cas": `
local old = redis.call('GET', KEYS[1])
if old ~= ARGV[1] then return old end
redis.call('SET', KEYS[1], ARGV[2])
return 1`,
	// Exchanges the values of two keys.
	"script-swap": `
local one, other = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])
if other then redis.call('SET', KEYS[1], other) else redis.call('DEL', KEYS[1]) end
if one then redis.call('SET', KEYS[2], one) else redis.call('DEL', KEYS[2]) end
return {one, other}`,
	// Takes one from a counter and gives it to another.
	"script-pay": `
return {redis.call('DECR', KEYS[1]), redis.call('INCR', KEYS[2])}`,
}

var scriptCommands = map[string]command{
	"script-cas":  {run: scriptCAS, first: 1, last: 1, step: 1},
	"script-swap": {run: scriptSwap, first: 1, last: 2, step: 1},
	"script-pay":  {run: scriptPay, first: 1, last: 2, step: 1},
}

func scriptCAS(t *tx, r request) reply {
	old := get(t, r)
	if old.kind != kindText || old.text != r[2] {
		return old
	}
	t.putText(r[1], r[3], window{})
	return integer(1)
}

func scriptSwap(t *tx, r request) reply {
	one, other := get(t, request{"GET", r[1]}), get(t, request{"GET", r[2]})
	for i, said := range []reply{other, one} {
		if said.kind == kindText {
			t.putText(r[1+i], said.text, window{})
		} else {
			del(t, request{"DEL", r[1+i]})
		}
	}
	return array([]reply{one, other})
}

func scriptPay(t *tx, r request) reply {
	return array([]reply{t.add(r[1], -1), t.add(r[2], 1)})
}

// wire is the request as the server understands it: a script is an EVAL.
func (r request) wire() []string {
	lua, isScript := scriptTexts[r[0]]
	if !isScript {
		return r
	}
	keys := len(commands[r[0]].keysOf(r))
	return append([]string{"EVAL", lua, strconv.Itoa(keys)}, r[1:]...)
}

// scriptCall is the script that calls all the requests of the operation.
func (o *operation) scriptCall() []string {
	var keys, rest []string
	for _, r := range o.requests {
		if !o.undeclared {
			keys = append(keys, commands[r[0]].keysOf(r)...)
		}
		rest = append(rest, strconv.Itoa(len(r)))
		rest = append(rest, r...)
	}
	code := batchScript
	switch o.caller {
	case "EVALSHA":
		sum := sha1.Sum([]byte(batchScript))
		code = hex.EncodeToString(sum[:])
	case "FCALL":
		code = "batch"
	}
	words := append([]string{o.caller, code, strconv.Itoa(len(keys))}, keys...)
	return append(words, rest...)
}
