// Bytes, bulk and connections: what an application does to a server besides single commands.

package main

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// checkLoad uses a client with a pool, and `connect` for named further ones.
func checkLoad(r *redis.Client, connect func(name string) *redis.Client) {
	binary(r)
	unicode(r)
	large(r)
	pipelines(r)
	concurrency(r, connect)
	pool(r)
	reconnecting(r, connect)
	r.FlushAll(ctx)
}

func binary(r *redis.Client) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	r.Set(ctx, "bin", every, 0)
	equal("a value of every byte", answer(r.Get(ctx, "bin").Bytes()), every)
	r.Set(ctx, string(every), "x", 0)
	equal("a key of every byte", answer(r.Get(ctx, string(every)).Result()), "x")
	keys := r.Keys(ctx, "*").Val()
	holds("KEYS gives it back", slices.Contains(keys, string(every)), keys)
	protocol := "$3\r\nfoo\r\n*1\r\n+OK\r\n\x00"
	r.Set(ctx, "p", protocol, 0)
	equal("a value like the protocol", answer(r.Get(ctx, "p").Result()), protocol)
	equal("ECHO of bytes", answer(r.Echo(ctx, every).Bytes()), every)
	r.Set(ctx, "", "x", 0)
	equal("an empty key", answer(r.Get(ctx, "").Result()), "x")
	r.FlushDB(ctx)
}

func unicode(r *redis.Client) {
	text := "Zażółć gęślą jaźń 日本語 🦀 \x00 \u202e"
	r.Set(ctx, "ключ🗝", text, 0)
	equal("a text in Unicode", answer(r.Get(ctx, "ключ🗝").Result()), text)
	equal("STRLEN counts bytes", answer(r.StrLen(ctx, "ключ🗝").Result()), len(text))
	r.FlushDB(ctx)
}

func large(r *redis.Client) {
	value := make([]byte, 10_000_000)
	rand.New(rand.NewSource(1)).Read(value)
	equal("SET of 10 MB", answer(r.Set(ctx, "large", value, 0).Result()), "OK")
	equal("STRLEN of 10 MB", answer(r.StrLen(ctx, "large").Result()), len(value))
	back, err := r.Get(ctx, "large").Bytes()
	holds("GET of 10 MB", bytes.Equal(back, value), err)
	within := answer(r.GetRange(ctx, "large", 5_000_000, 5_000_099).Bytes())
	equal("GETRANGE within", within, value[5_000_000:5_000_100])
	equal("APPEND to it", answer(r.Append(ctx, "large", "end").Result()), len(value)+3)
	equal("UNLINK of it", answer(r.Unlink(ctx, "large").Result()), 1)
}

func pipelines(r *redis.Client) {
	pipe := r.Pipeline()
	var answers []*redis.StringCmd
	for i := range 5_000 {
		key := fmt.Sprint("p:", i)
		pipe.Set(ctx, key, i, 0)
		answers = append(answers, pipe.Get(ctx, key))
	}
	done, err := pipe.Exec(ctx)
	equal("a pipeline of 10,000", []any{len(done), err}, []any{10_000, nil})
	wrong := slices.ContainsFunc(answers, func(answer *redis.StringCmd) bool {
		number, err := answer.Int()
		return err != nil || answers[number] != answer
	})
	holds("its answers are in order", !wrong, "")
	before := pipe.Set(ctx, "text", "abc", 0)
	bad := pipe.Incr(ctx, "text")
	after := pipe.Get(ctx, "text")
	pipe.Exec(ctx)
	notInteger := "ERR value is not an integer or out of range"
	refused("an error within a pipeline", notInteger, bad.Err())
	equal("its neighbours", []any{before.Val(), after.Val()}, []any{"OK", "abc"})
	equal("DBSIZE after it", answer(r.DBSize(ctx).Result()), 5_001)
	r.FlushDB(ctx)
}

func concurrency(r *redis.Client, connect func(name string) *redis.Client) {
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			client := connect("counting")
			defer client.Close()
			own := client.Conn()
			defer own.Close()
			for range 250 {
				own.Incr(ctx, "counter")
			}
		})
	}
	all.Wait()
	equal("20 connections count to 5,000", answer(r.Get(ctx, "counter").Result()), "5000")
}

func pool(r *redis.Client) {
	options := *r.Options()
	options.PoolSize, options.ClientName = 4, "pooled"
	shared := redis.NewClient(&options)
	defer shared.Close()
	var wrong atomic.Int64
	var all sync.WaitGroup
	for number := range 12 {
		all.Go(func() {
			key := fmt.Sprint("pool:", number)
			for i := range 50 {
				shared.Set(ctx, key, i, 0)
				if got, err := shared.Get(ctx, key).Int(); err != nil || got != i {
					wrong.Add(1)
				}
			}
		})
	}
	all.Wait()
	equal("12 goroutines share a pool of 4", wrong.Load(), 0)
	connections := strings.Count(r.ClientList(ctx).Val(), " name=pooled ")
	between("the connections of the pool", int64(connections), 1, 4)
}

func reconnecting(r *redis.Client, connect func(name string) *redis.Client) {
	client := connect("again")
	defer client.Close()
	id := client.ClientID(ctx).Val()
	killed := answer(r.ClientKillByFilter(ctx, "ID", fmt.Sprint(id)).Result())
	equal("CLIENT KILL of an idle one", killed, 1)
	equal("it reconnects", answer(client.Set(ctx, "back", "yes", 0).Result()), "OK")
	equal("and finds its key", answer(client.Get(ctx, "back").Result()), "yes")
	renewed := client.ClientID(ctx).Val()
	holds("under a new id", renewed > id, renewed)
	equal("with its name", answer(client.ClientGetName(ctx).Result()), "again")
}
