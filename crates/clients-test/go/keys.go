// The key commands: life, expiry, names, databases, iteration, inspection.

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// checkKeys leaves all databases as empty as they were.
func checkKeys(r *redis.Conn) {
	life(r)
	expiry(r)
	expiryConditions(r)
	names(r)
	databases(r)
	iteration(r)
	inspection(r)
	r.FlushAll(ctx)
}

func life(r *redis.Conn) {
	r.MSet(ctx, "a", "1", "b", "2", "c", "3")
	equal("EXISTS counts each mention", answer(r.Exists(ctx, "a", "b", "none", "a").Result()), 3)
	equal("TOUCH", answer(r.Touch(ctx, "a", "none").Result()), 1)
	equal("TYPE", answer(r.Type(ctx, "a").Result()), "string")
	equal("TYPE of nothing", answer(r.Type(ctx, "none").Result()), "none")
	equal("DEL", answer(r.Del(ctx, "a", "none").Result()), 1)
	equal("UNLINK", answer(r.Unlink(ctx, "b", "c", "none").Result()), 2)
	equal("DBSIZE after that", answer(r.DBSize(ctx).Result()), 0)
	equal("RANDOMKEY of nothing", answer(r.RandomKey(ctx).Result()), nil)
	r.Set(ctx, "only", "1", 0)
	equal("RANDOMKEY", answer(r.RandomKey(ctx).Result()), "only")
	r.Del(ctx, "only")
}

func expiry(r *redis.Conn) {
	now := time.Now().Unix()
	none, without := time.Duration(-2), time.Duration(-1)
	r.Set(ctx, "k", "v", 0)
	equal("TTL without expiry", answer(r.TTL(ctx, "k").Result()), without)
	equal("PTTL without expiry", answer(r.PTTL(ctx, "k").Result()), without)
	equal("TTL of nothing", answer(r.TTL(ctx, "none").Result()), none)
	equal("PTTL of nothing", answer(r.PTTL(ctx, "none").Result()), none)
	equal("EXPIRETIME without expiry", answer(r.ExpireTime(ctx, "k").Result()), without)
	equal("PEXPIRETIME of nothing", answer(r.PExpireTime(ctx, "none").Result()), none)
	equal("EXPIRE of nothing", answer(r.Expire(ctx, "none", time.Minute).Result()), false)
	equal("EXPIRE", answer(r.Expire(ctx, "k", 100*time.Second).Result()), true)
	between("TTL after EXPIRE", r.TTL(ctx, "k").Val(), 90*time.Second, 100*time.Second)
	equal("PEXPIRE", answer(r.PExpire(ctx, "k", 30*time.Second).Result()), true)
	between("PTTL after PEXPIRE", r.PTTL(ctx, "k").Val(), 25*time.Second, 30*time.Second)
	equal("EXPIREAT", answer(r.ExpireAt(ctx, "k", time.Unix(now+70, 0)).Result()), true)
	seconds := time.Duration(now+70) * time.Second
	equal("EXPIRETIME", answer(r.ExpireTime(ctx, "k").Result()), seconds)
	precise := time.UnixMilli(now*1000 + 80_003)
	equal("PEXPIREAT", answer(r.PExpireAt(ctx, "k", precise).Result()), true)
	milliseconds := time.Duration(now*1000+80_003) * time.Millisecond
	equal("PEXPIRETIME", answer(r.PExpireTime(ctx, "k").Result()), milliseconds)
	equal("PERSIST", answer(r.Persist(ctx, "k").Result()), true)
	equal("PERSIST again", answer(r.Persist(ctx, "k").Result()), false)
	equal("TTL after PERSIST", answer(r.TTL(ctx, "k").Result()), without)
	equal("EXPIRE in the past", answer(r.Expire(ctx, "k", -time.Second).Result()), true)
	equal("EXISTS after it", answer(r.Exists(ctx, "k").Result()), 0)
	r.Set(ctx, "soon", "v", 0)
	r.PExpire(ctx, "soon", time.Millisecond)
	gone := func() bool { return r.Exists(ctx, "soon").Val() == 0 }
	eventually("a key with PEXPIRE 1 is gone", gone)
}

func expiryConditions(r *redis.Conn) {
	r.Set(ctx, "k", "v", 0)
	at := func(seconds int) time.Duration { return time.Duration(seconds) * time.Second }
	equal("EXPIRE XX without expiry", answer(r.ExpireXX(ctx, "k", at(100)).Result()), false)
	equal("EXPIRE GT without expiry", answer(r.ExpireGT(ctx, "k", at(100)).Result()), false)
	equal("EXPIRE NX without expiry", answer(r.ExpireNX(ctx, "k", at(100)).Result()), true)
	equal("EXPIRE NX with expiry", answer(r.ExpireNX(ctx, "k", at(200)).Result()), false)
	equal("EXPIRE GT of less", answer(r.ExpireGT(ctx, "k", at(50)).Result()), false)
	equal("EXPIRE GT of more", answer(r.ExpireGT(ctx, "k", at(200)).Result()), true)
	equal("EXPIRE LT of more", answer(r.ExpireLT(ctx, "k", at(300)).Result()), false)
	equal("EXPIRE LT of less", answer(r.ExpireLT(ctx, "k", at(60)).Result()), true)
	equal("EXPIRE XX with expiry", answer(r.ExpireXX(ctx, "k", at(70)).Result()), true)
	between("TTL after all", r.TTL(ctx, "k").Val(), at(60), at(70))
	r.Persist(ctx, "k")
	equal("EXPIRE LT without expiry", answer(r.ExpireLT(ctx, "k", at(10)).Result()), true)
	r.Del(ctx, "k")
}

func names(r *redis.Conn) {
	r.Set(ctx, "a", "1", 100*time.Second)
	equal("RENAME", answer(r.Rename(ctx, "a", "b").Result()), "OK")
	between("TTL of a renamed key", r.TTL(ctx, "b").Val(), 90*time.Second, 100*time.Second)
	refused("RENAME of nothing", "ERR no such key", r.Rename(ctx, "none", "x").Err())
	r.Set(ctx, "c", "3", 0)
	equal("RENAMENX onto a key", answer(r.RenameNX(ctx, "b", "c").Result()), false)
	equal("RENAMENX", answer(r.RenameNX(ctx, "b", "d").Result()), true)
	equal("COPY", answer(r.Copy(ctx, "d", "e", 0, false).Result()), 1)
	equal("what COPY left", answer(r.Get(ctx, "e").Result()), "1")
	between("TTL of a copy", r.TTL(ctx, "e").Val(), 90*time.Second, 100*time.Second)
	equal("COPY onto a key", answer(r.Copy(ctx, "c", "e", 0, false).Result()), 0)
	equal("COPY REPLACE", answer(r.Copy(ctx, "c", "e", 0, true).Result()), 1)
	equal("what COPY REPLACE left", answer(r.Get(ctx, "e").Result()), "3")
	equal("COPY of nothing", answer(r.Copy(ctx, "none", "x", 0, false).Result()), 0)
	equal("COPY DB", answer(r.Copy(ctx, "c", "c", 1, false).Result()), 1)
	same := "ERR source and destination objects are the same"
	refused("COPY onto itself", same, r.Copy(ctx, "c", "c", 0, false).Err())
	r.FlushAll(ctx)
}

func databases(r *redis.Conn) {
	r.Set(ctx, "k", "zero", 0)
	equal("MOVE", answer(r.Move(ctx, "k", 3).Result()), true)
	equal("EXISTS after MOVE", answer(r.Exists(ctx, "k").Result()), 0)
	equal("MOVE of nothing", answer(r.Move(ctx, "k", 3).Result()), false)
	equal("SELECT", answer(r.Select(ctx, 3).Result()), "OK")
	equal("GET in database 3", answer(r.Get(ctx, "k").Result()), "zero")
	r.Select(ctx, 0)
	r.Set(ctx, "k", "other", 0)
	equal("MOVE onto a key", answer(r.Move(ctx, "k", 3).Result()), false)
	equal("SWAPDB", answer(r.SwapDB(ctx, 0, 3).Result()), "OK")
	equal("GET after SWAPDB", answer(r.Get(ctx, "k").Result()), "zero")
	equal("FLUSHDB", answer(r.FlushDB(ctx).Result()), "OK")
	equal("DBSIZE after FLUSHDB", answer(r.DBSize(ctx).Result()), 0)
	r.Select(ctx, 3)
	equal("FLUSHDB left database 3", answer(r.Get(ctx, "k").Result()), "other")
	r.Select(ctx, 0)
	equal("FLUSHDB ASYNC", answer(r.FlushDBAsync(ctx).Result()), "OK")
	equal("FLUSHALL ASYNC", answer(r.FlushAllAsync(ctx).Result()), "OK")
	equal("FLUSHALL SYNC", answer(r.Do(ctx, "FLUSHALL", "SYNC").Result()), "OK")
	r.Select(ctx, 3)
	equal("FLUSHALL emptied database 3", answer(r.DBSize(ctx).Result()), 0)
	r.Select(ctx, 0)
	refused("SELECT of no database", "ERR DB index is out of range", r.Select(ctx, 99).Err())
}

func iteration(r *redis.Conn) {
	var all []string
	for i := range 1000 {
		all = append(all, fmt.Sprint("user:", i))
		r.Set(ctx, all[i], "x", 0)
	}
	r.Set(ctx, "other", "y", 0)
	all = append(all, "other")
	slices.Sort(all)
	equal("KEYS", len(r.Keys(ctx, "user:99?").Val()), 10)
	classes := r.Keys(ctx, "user:[1-2]").Val()
	slices.Sort(classes)
	equal("KEYS of a class", classes, []string{"user:1", "user:2"})
	equal("KEYS of nothing", answer(r.Keys(ctx, "none*").Result()), []string{})
	page, cursor := r.Scan(ctx, 0, "", 10).Val()
	part := cursor != 0 && len(page) >= 1 && len(page) < 200
	holds("SCAN COUNT gives a part", part, page)
	equal("SCAN sees every key", found(r.Scan(ctx, 0, "", 100)), all)
	equal("SCAN MATCH", found(r.Scan(ctx, 0, "oth*", 0)), []string{"other"})
	equal("SCAN TYPE string", found(r.ScanType(ctx, 0, "", 500, "string")), all)
	equal("SCAN TYPE list", len(found(r.ScanType(ctx, 0, "", 500, "list"))), 0)
	equal("DBSIZE", answer(r.DBSize(ctx).Result()), 1001)
	r.FlushDB(ctx)
}

// found is what a whole iteration finds, each key once, in order.
func found(first *redis.ScanCmd) []string {
	var keys []string
	iterator := first.Iterator()
	for iterator.Next(ctx) {
		keys = append(keys, iterator.Val())
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func inspection(r *redis.Conn) {
	r.MSet(ctx, "int", "12345", "embstr", "short", "raw", strings.Repeat("x", 100))
	encoding := func(key string) any { return answer(r.ObjectEncoding(ctx, key).Result()) }
	equal("OBJECT ENCODING of a number", encoding("int"), "int")
	equal("OBJECT ENCODING of a short text", encoding("embstr"), "embstr")
	equal("OBJECT ENCODING of a long text", encoding("raw"), "raw")
	equal("OBJECT ENCODING of nothing", encoding("none"), nil)
	equal("OBJECT REFCOUNT", answer(r.ObjectRefCount(ctx, "raw").Result()), 1)
	between("OBJECT IDLETIME", r.ObjectIdleTime(ctx, "raw").Val(), 0, 5*time.Second)
	between("MEMORY USAGE", r.MemoryUsage(ctx, "raw").Val(), 100, 400)
	equal("MEMORY USAGE of nothing", answer(r.MemoryUsage(ctx, "none").Result()), nil)
	r.FlushDB(ctx)
}
