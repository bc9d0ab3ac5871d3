// Scripts and functions: go-redis's Script and its methods for FUNCTION and FCALL.

package main

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

var (
	transfer = redis.NewScript(shared("transfer.lua"))
	library  = shared("library.lua")
	noScript = strings.Repeat("0", 40)
)

var scriptCases = map[string]func(session){
	"script: EVALSHA falls back to EVAL": fallsBack,
	"script: types of replies":           replyTypes,
	"script: errors":                     scriptErrors,
	"script: read only":                  scriptReadOnly,
	"script: in a transaction":           scriptInTransaction,
	"script: seen whole":                 scriptsSeenWhole,
	"function: loaded and called":        functionLoaded,
	"function: dumped and restored":      functionDumped,
	"function: read only":                functionReadOnly,
}

func fallsBack(s session) {
	s.MSet(ctx, "a", 100, "b", 1)
	run := func(from, to string, amount int) any {
		return answer(transfer.Run(ctx, s, []string{from, to}, amount).Int64Slice())
	}
	equal("the first run", run("a", "b", 10), []int64{90, 11})
	known := answer(s.ScriptExists(ctx, transfer.Hash(), noScript).Result())
	equal("SCRIPT EXISTS", known, []bool{true, false})
	again := answer(s.EvalSha(ctx, transfer.Hash(), []string{"a", "b"}, 1).Int64Slice())
	equal("EVALSHA", again, []int64{89, 12})
	equal("SCRIPT FLUSH", answer(s.ScriptFlush(ctx).Result()), "OK")
	equal("SCRIPT EXISTS after it", answer(transfer.Exists(ctx, s).Result()), []bool{false})
	equal("the run after it", run("b", "a", 2), []int64{10, 91})
	loaded := answer(s.ScriptLoad(ctx, shared("transfer.lua")).Result())
	equal("SCRIPT LOAD", loaded, transfer.Hash())
}

func replyTypes(s session) {
	nested := []any{int64(1), []any{"nested", "k"}}
	want := []any{int64(42), int64(2), int64(-7), "text", "FINE", nested, nil, int64(1)}
	want = append(want, `{"a":[1,2]}`, "2")
	got := answer(s.Eval(ctx, shared("replies.lua"), []string{"k"}, "x", "y").Result())
	equal("replies", got, want)
}

func scriptErrors(s session) {
	s.MSet(ctx, "text", "abc", "a", 3)
	increment := redis.NewScript("return redis.call('INCR', KEYS[1])")
	where := " script: " + increment.Hash() + ", on @user_script:1."
	refused("of a command", notInteger+where, increment.Run(ctx, s, []string{"text"}).Err())
	poor := transfer.Run(ctx, s, []string{"a", "b"}, 4).Err()
	refused("of the script", "POOR a has 3", poor)
	missing := s.EvalSha(ctx, noScript, nil).Err()
	refused("NOSCRIPT", "NOSCRIPT No matching script. Please use EVAL.", missing)
	err := s.Eval(ctx, "return (", nil).Err()
	compiling := "ERR Error compiling script (new function): user_script:1: "
	holds("of the compiler", err != nil && strings.HasPrefix(err.Error(), compiling), err)
}

func scriptReadOnly(s session) {
	s.Set(ctx, "k", "v", 0)
	get := redis.NewScript("return redis.call('GET', KEYS[1])")
	equal("EVAL_RO", answer(get.EvalRO(ctx, s, []string{"k"}).Result()), "v")
	equal("EVALSHA_RO", answer(get.RunRO(ctx, s, []string{"k"}).Result()), "v")
	set := redis.NewScript("return redis.call('SET', KEYS[1], 'w')")
	text := "ERR Write commands are not allowed from read-only scripts. script: " + set.Hash() +
		", on @user_script:1."
	refused("a write", text, set.RunRO(ctx, s, []string{"k"}).Err())
	equal("nothing was written", answer(s.Get(ctx, "k").Result()), "v")
}

func scriptInTransaction(s session) {
	s.ScriptFlush(ctx)
	// In a pipeline go-redis cannot fall back, so the script is loaded before.
	must("SCRIPT LOAD", transfer.Load(ctx, s).Err())
	var set *redis.StatusCmd
	var script *redis.Cmd
	var get *redis.StringCmd
	_, err := s.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		set = pipe.Set(ctx, "a", 5, 0)
		script = transfer.EvalSha(ctx, pipe, []string{"a", "b"}, 2)
		get = pipe.Get(ctx, "a")
		return nil
	})
	equal("EXEC", []any{err, set.Val(), get.Val()}, []any{nil, "OK", "3"})
	equal("the script", answer(script.Int64Slice()), []int64{3, 2})
}

func scriptsSeenWhole(s session) {
	s.MSet(ctx, "a", 1000, "b", 1000)
	var working atomic.Int64
	working.Store(4)
	together(s, 5, func(number int, own *redis.Client) {
		if number < 4 {
			keys := []string{"a", "b"}
			if number%2 == 1 {
				slices.Reverse(keys)
			}
			for range 100 {
				must("a transfer", transfer.Run(ctx, own, keys, number/2+1).Err())
			}
			working.Add(-1)
		}
		for working.Load() > 0 {
			seen, err := own.MGet(ctx, "a", "b").Result()
			must("MGET", err)
			a, _ := strconv.Atoi(seen[0].(string))
			b, _ := strconv.Atoi(seen[1].(string))
			if a+b != 2000 {
				fail("the sum of a and b", short(seen))
			}
		}
	})
	equal("what is left", answer(s.MGet(ctx, "a", "b").Result()), []any{"1000", "1000"})
}

func functionLoaded(s session) {
	s.FunctionFlush(ctx)
	equal("FUNCTION LOAD", answer(s.FunctionLoad(ctx, library).Result()), "accounts")
	exists := "ERR Library 'accounts' already exists"
	refused("FUNCTION LOAD again", exists, s.FunctionLoad(ctx, library).Err())
	replaced := answer(s.FunctionLoadReplace(ctx, library).Result())
	equal("FUNCTION LOAD REPLACE", replaced, "accounts")
	listed, err := s.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: "acc*"}).Result()
	equal("FUNCTION LIST", []any{err, len(listed), listed[0].Name}, []any{nil, 1, "accounts"})
	var names []string
	for _, function := range listed[0].Functions {
		names = append(names, function.Name)
	}
	slices.Sort(names)
	equal("FUNCTION LIST has the functions", names, []string{"balance", "transfer"})
	s.Set(ctx, "a", 10, 0)
	call := func() (any, error) {
		return s.FCall(ctx, "transfer", []string{"a", "b"}, 3).Result()
	}
	equal("FCALL", answer(call()), 3)
	equal("what FCALL left", answer(s.MGet(ctx, "a", "b").Result()), []any{"7", "3"})
	equal("FUNCTION DELETE", answer(s.FunctionDelete(ctx, "accounts").Result()), "OK")
	_, err = call()
	refused("FCALL after it", "ERR Function not found", err)
	refused("FUNCTION DELETE again", "ERR Library not found", s.FunctionDelete(ctx, "accounts").Err())
}

func functionDumped(s session) {
	s.FunctionLoadReplace(ctx, library)
	dump := s.FunctionDump(ctx).Val()
	equal("FUNCTION FLUSH", answer(s.FunctionFlush(ctx).Result()), "OK")
	listed, err := s.FunctionList(ctx, redis.FunctionListQuery{}).Result()
	equal("FUNCTION LIST after it", []any{len(listed), err}, []any{0, nil})
	equal("FUNCTION RESTORE", answer(s.FunctionRestore(ctx, dump).Result()), "OK")
	s.Set(ctx, "a", 7, 0)
	equal("FCALL", answer(s.FCall(ctx, "balance", []string{"a"}).Result()), "7")
	exists := "ERR Library accounts already exists"
	refused("FUNCTION RESTORE again", exists, s.FunctionRestore(ctx, dump).Err())
	other := dump[:len(dump)-1] + "?"
	wrong := "ERR DUMP payload version or checksum are wrong"
	refused("FUNCTION RESTORE of another", wrong, s.FunctionRestore(ctx, other).Err())
	s.FunctionFlush(ctx)
}

func functionReadOnly(s session) {
	s.FunctionLoadReplace(ctx, library)
	s.Set(ctx, "a", 7, 0)
	equal("FCALL_RO", answer(s.FCallRO(ctx, "balance", []string{"a"}).Result()), "7")
	text := "ERR Can not execute a script with write flag using *_ro command."
	refused("FCALL_RO that writes", text, s.FCallRO(ctx, "transfer", []string{"a", "b"}, 1).Err())
	s.FunctionFlush(ctx)
}
