// The string commands, through go-redis's methods for them.

package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// checkStrings leaves the database as empty as it was.
func checkStrings(r *redis.Conn) {
	setAndGet(r)
	setExpiring(r)
	getEx(r)
	many(r)
	counters(r)
	ranges(r)
	lcs(r)
	r.FlushDB(ctx)
}

func setAndGet(r *redis.Conn) {
	mode := func(value, mode string, get bool) any {
		return answer(r.SetArgs(ctx, "k", value, redis.SetArgs{Mode: mode, Get: get}).Result())
	}
	equal("GET of nothing", answer(r.Get(ctx, "none").Result()), nil)
	equal("SET", answer(r.Set(ctx, "k", "v", 0).Result()), "OK")
	equal("GET", answer(r.Get(ctx, "k").Result()), "v")
	equal("SET NX on a key", mode("w", "NX", false), nil)
	equal("SET XX on a key", mode("x", "XX", false), "OK")
	equal("SET NX on nothing", answer(r.Do(ctx, "SET", "n", "1", "NX").Result()), "OK")
	equal("SET GET", mode("y", "", true), "x")
	equal("SET NX GET", mode("z", "NX", true), "y")
	equal("what SET NX GET left", answer(r.Get(ctx, "k").Result()), "y")
	equal("GETSET", answer(r.GetSet(ctx, "k", "g").Result()), "y")
	equal("GETDEL", answer(r.GetDel(ctx, "k").Result()), "g")
	equal("GETDEL of nothing", answer(r.GetDel(ctx, "k").Result()), nil)
	equal("SETNX", answer(r.SetNX(ctx, "s", "1", 0).Result()), true)
	equal("SETNX on a key", answer(r.SetNX(ctx, "s", "2", 0).Result()), false)
	equal("SET of an empty value", answer(r.Set(ctx, "e", "", 0).Result()), "OK")
	equal("GET of an empty value", answer(r.Get(ctx, "e").Result()), "")
}

func setExpiring(r *redis.Conn) {
	now := time.Now().Unix()
	equal("SET EX", answer(r.Set(ctx, "k", "v", 100*time.Second).Result()), "OK")
	between("TTL after EX", r.TTL(ctx, "k").Val(), 90*time.Second, 100*time.Second)
	equal("SET PX", answer(r.Set(ctx, "k", "v", 50_500*time.Millisecond).Result()), "OK")
	between("PTTL after PX", r.PTTL(ctx, "k").Val(), 45*time.Second, 50_500*time.Millisecond)
	at := redis.SetArgs{ExpireAt: time.Unix(now+200, 0)}
	equal("SET EXAT", answer(r.SetArgs(ctx, "k", "v", at).Result()), "OK")
	expires := func() any { return answer(r.Do(ctx, "PEXPIRETIME", "k").Result()) }
	equal("PEXPIRETIME after EXAT", expires(), (now+200)*1000)
	set := answer(r.Do(ctx, "SET", "k", "v", "PXAT", now*1000+300_001).Result())
	equal("SET PXAT", set, "OK")
	equal("PEXPIRETIME after PXAT", expires(), now*1000+300_001)
	equal("SET KEEPTTL", answer(r.Set(ctx, "k", "w", redis.KeepTTL).Result()), "OK")
	equal("PEXPIRETIME after KEEPTTL", expires(), now*1000+300_001)
	r.Set(ctx, "k", "w", 0)
	equal("SET drops the expiry", answer(r.TTL(ctx, "k").Result()), time.Duration(-1))
	equal("SETEX", answer(r.SetEx(ctx, "k", "v", 100*time.Second).Result()), "OK")
	between("TTL after SETEX", r.TTL(ctx, "k").Val(), 90*time.Second, 100*time.Second)
	equal("PSETEX", answer(r.Do(ctx, "PSETEX", "k", 90_000, "v").Result()), "OK")
	between("PTTL after PSETEX", r.PTTL(ctx, "k").Val(), 85*time.Second, 90*time.Second)
	r.Set(ctx, "gone", "v", time.Millisecond)
	gone := func() bool { return answer(r.Get(ctx, "gone").Result()) == nil }
	eventually("a key with PX 1 is gone", gone)
	past := redis.SetArgs{ExpireAt: time.Unix(1, 0)}
	equal("SET EXAT in the past", answer(r.SetArgs(ctx, "k", "v", past).Result()), "OK")
	equal("GET after EXAT in the past", answer(r.Get(ctx, "k").Result()), nil)
}

func getEx(r *redis.Conn) {
	now := time.Now().Unix()
	r.Set(ctx, "k", "v", 0)
	equal("GETEX", answer(r.Do(ctx, "GETEX", "k").Result()), "v")
	equal("TTL after GETEX", answer(r.TTL(ctx, "k").Result()), time.Duration(-1))
	equal("GETEX EX", answer(r.GetEx(ctx, "k", 100*time.Second).Result()), "v")
	between("TTL after GETEX EX", r.TTL(ctx, "k").Val(), 90*time.Second, 100*time.Second)
	equal("GETEX PX", answer(r.GetEx(ctx, "k", 70_500*time.Millisecond).Result()), "v")
	between("PTTL after GETEX PX", r.PTTL(ctx, "k").Val(), 65*time.Second, 70_500*time.Millisecond)
	r.Do(ctx, "GETEX", "k", "EXAT", now+50)
	equal("GETEX EXAT", answer(r.Do(ctx, "EXPIRETIME", "k").Result()), now+50)
	r.Do(ctx, "GETEX", "k", "PXAT", now*1000+60_007)
	equal("GETEX PXAT", answer(r.Do(ctx, "PEXPIRETIME", "k").Result()), now*1000+60_007)
	equal("GETEX PERSIST", answer(r.GetEx(ctx, "k", 0).Result()), "v")
	equal("TTL after GETEX PERSIST", answer(r.TTL(ctx, "k").Result()), time.Duration(-1))
	equal("GETEX of nothing", answer(r.GetEx(ctx, "none", time.Second).Result()), nil)
}

func many(r *redis.Conn) {
	equal("MSET", answer(r.MSet(ctx, "m1", "1", "m2", "2").Result()), "OK")
	equal("MGET", answer(r.MGet(ctx, "m1", "none", "m2").Result()), []any{"1", nil, "2"})
	equal("MSETNX with a taken key", answer(r.MSetNX(ctx, "m2", "x", "m3", "x").Result()), false)
	equal("what MSETNX left", answer(r.MGet(ctx, "m2", "m3").Result()), []any{"2", nil})
	equal("MSETNX", answer(r.MSetNX(ctx, "m3", "3", "m4", "4").Result()), true)
	var pairs, values []any
	var keys []string
	for i := range 1000 {
		key, value := fmt.Sprint("many:", i), fmt.Sprint(i)
		pairs, keys, values = append(pairs, key, value), append(keys, key), append(values, value)
	}
	equal("MSET of 1000", answer(r.MSet(ctx, pairs...).Result()), "OK")
	equal("MGET of 1000", answer(r.MGet(ctx, keys...).Result()), values)
}

func counters(r *redis.Conn) {
	equal("INCR", answer(r.Incr(ctx, "c").Result()), 1)
	equal("INCRBY", answer(r.IncrBy(ctx, "c", 41).Result()), 42)
	equal("DECR", answer(r.Decr(ctx, "c").Result()), 41)
	equal("DECRBY", answer(r.DecrBy(ctx, "c", 50).Result()), -9)
	largest := answer(r.IncrBy(ctx, "big", math.MaxInt64).Result())
	equal("INCRBY to the largest", largest, int64(math.MaxInt64))
	overflow := "ERR increment or decrement would overflow"
	refused("INCR past the largest", overflow, r.Incr(ctx, "big").Err())
	equal("INCRBYFLOAT", answer(r.IncrByFloat(ctx, "f", 10.5).Result()), 10.5)
	equal("INCRBYFLOAT of 0.1", answer(r.IncrByFloat(ctx, "f", 0.1).Result()), 10.6)
	equal("the text INCRBYFLOAT left", answer(r.Get(ctx, "f").Result()), "10.6")
	r.Set(ctx, "f", "3.0e3", 0)
	equal("INCRBYFLOAT on an exponent", answer(r.IncrByFloat(ctx, "f", 200).Result()), 3200.0)
	equal("the text without an exponent", answer(r.Get(ctx, "f").Result()), "3200")
}

func ranges(r *redis.Conn) {
	equal("APPEND to nothing", answer(r.Append(ctx, "a", "Hello").Result()), 5)
	equal("APPEND", answer(r.Append(ctx, "a", " World").Result()), 11)
	equal("STRLEN", answer(r.StrLen(ctx, "a").Result()), 11)
	equal("STRLEN of nothing", answer(r.StrLen(ctx, "none").Result()), 0)
	equal("GETRANGE", answer(r.GetRange(ctx, "a", 0, 4).Result()), "Hello")
	equal("GETRANGE from the end", answer(r.GetRange(ctx, "a", -5, -1).Result()), "World")
	equal("GETRANGE past the end", answer(r.GetRange(ctx, "a", 6, 100).Result()), "World")
	equal("GETRANGE of an empty range", answer(r.GetRange(ctx, "a", 5, 3).Result()), "")
	equal("SETRANGE", answer(r.SetRange(ctx, "a", 6, "Redis").Result()), 11)
	equal("what SETRANGE left", answer(r.Get(ctx, "a").Result()), "Hello Redis")
	equal("SETRANGE past the end", answer(r.SetRange(ctx, "p", 3, "x").Result()), 4)
	equal("the zeros before it", answer(r.Get(ctx, "p").Result()), "\x00\x00\x00x")
}

func lcs(r *redis.Conn) {
	r.MSet(ctx, "l1", "ohmytext", "l2", "mynewtext")
	query := func(query redis.LCSQuery) string {
		query.Key1, query.Key2 = "l1", "l2"
		match, err := r.LCS(ctx, &query).Result()
		if err != nil {
			return err.Error()
		}
		return lcsText(match)
	}
	equal("LCS", query(redis.LCSQuery{}), "mytext len 0")
	equal("LCS LEN", query(redis.LCSQuery{Len: true}), " len 6")
	equal("LCS IDX", query(redis.LCSQuery{Idx: true}), "4-7/5-8:0 2-3/0-1:0  len 6")
	long := redis.LCSQuery{Idx: true, MinMatchLen: 4}
	equal("LCS IDX MINMATCHLEN", query(long), "4-7/5-8:0  len 6")
	long.WithMatchLen = true
	equal("LCS IDX WITHMATCHLEN", query(long), "4-7/5-8:4  len 6")
}

// lcsText is the matches as text: ranges in both, the length where asked for, and the total.
func lcsText(match *redis.LCSMatch) string {
	var text strings.Builder
	for _, m := range match.Matches {
		fmt.Fprintf(&text, "%d-%d/", m.Key1.Start, m.Key1.End)
		fmt.Fprintf(&text, "%d-%d:%d ", m.Key2.Start, m.Key2.End, m.MatchLen)
	}
	return fmt.Sprintf("%s%s len %d", text.String(), match.MatchString, match.Len)
}
