// Transactions: go-redis's TxPipelined, and Watch with the retry that its documentation shows.

package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

const notInteger = "ERR value is not an integer or out of range"

var transactionCases = map[string]func(session){
	"transaction: replies in order":         repliesInOrder,
	"transaction: an error inside":          errorInside,
	"transaction: a refused command aborts": refusedInside,
	"transaction: discarded":                discarded,
	"transaction: seen whole":               transactionsSeenWhole,
	"watch: a change aborts":                changeAborts,
	"watch: unwatched":                      unwatched,
	"watch: retried until it holds":         retried,
}

func repliesInOrder(s session) {
	pipe := s.TxPipeline()
	set, incr, get := pipe.Set(ctx, "n", 41, 0), pipe.Incr(ctx, "n"), pipe.Get(ctx, "n")
	push, list := pipe.LPush(ctx, "l", "a", "b"), pipe.LRange(ctx, "l", 0, -1)
	none := pipe.Get(ctx, "none")
	_, err := pipe.Exec(ctx)
	equal("Exec gives the first error, a nil", err, redis.Nil)
	equal("strings", []any{set.Val(), incr.Val(), get.Val()}, []any{"OK", int64(42), "42"})
	equal("lists", []any{push.Val(), list.Val()}, []any{int64(2), []string{"b", "a"}})
	equal("nothing", none.Err(), redis.Nil)
}

func errorInside(s session) {
	var set, after *redis.StatusCmd
	var bad, length *redis.IntCmd
	_, err := s.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		set, bad = pipe.Set(ctx, "text", "abc", 0), pipe.Incr(ctx, "text")
		length, after = pipe.Append(ctx, "text", "d"), pipe.Set(ctx, "after", "x", 0)
		return nil
	})
	refused("Exec gives the error", notInteger, err)
	refused("the error", notInteger, bad.Err())
	neighbours := []any{set.Val(), length.Val(), after.Val()}
	equal("its neighbours", neighbours, []any{"OK", int64(4), "OK"})
	equal("they ran", answer(s.Get(ctx, "text").Result()), "abcd")
}

func refusedInside(s session) {
	s.Set(ctx, "k", "old", 0)
	var unknown *redis.Cmd
	_, err := s.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "k", "new", 0)
		unknown = pipe.Do(ctx, "NOSUCH", "a")
		return nil
	})
	aborted := "EXECABORT Transaction discarded because of previous errors."
	refused("Exec", aborted, err)
	text := "ERR unknown command 'NOSUCH', with args beginning with: 'a' "
	refused("the refused command", text, unknown.Err())
	equal("go-redis knows it", redis.IsExecAbortError(err), true)
	equal("nothing ran", answer(s.Get(ctx, "k").Result()), "old")
}

func discarded(s session) {
	conn := s.Conn()
	defer conn.Close()
	conn.Do(ctx, "MULTI")
	equal("INCR is queued", answer(conn.Do(ctx, "INCR", "n").Result()), "QUEUED")
	equal("DISCARD", answer(conn.Do(ctx, "DISCARD").Result()), "OK")
	refused("EXEC after it", "ERR EXEC without MULTI", conn.Do(ctx, "EXEC").Err())
	equal("nothing ran", answer(conn.Exists(ctx, "n").Result()), 0)
	pipe := conn.TxPipeline()
	next := pipe.Incr(ctx, "n")
	_, err := pipe.Exec(ctx)
	equal("the next one", []any{next.Val(), err}, []any{int64(1), nil})
}

func transactionsSeenWhole(s session) {
	var keys []string
	var zeros []any
	for i := range 16 {
		keys = append(keys, fmt.Sprint("whole:", i))
		zeros = append(zeros, keys[i], "0")
	}
	s.MSet(ctx, zeros...)
	var writing atomic.Int64
	writing.Store(3)
	together(s, 5, func(number int, own *redis.Client) {
		if number < 3 {
			for i := range 100 {
				_, err := own.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
					for _, key := range keys {
						pipe.Set(ctx, key, fmt.Sprint(number, ":", i), 0)
					}
					return nil
				})
				must("a transaction", err)
			}
			writing.Add(-1)
		}
		for writing.Load() > 0 {
			seen, err := own.MGet(ctx, keys...).Result()
			must("MGET", err)
			if slices.ContainsFunc(seen, func(value any) bool { return value != seen[0] }) {
				fail("values of two transactions in one MGET", short(seen))
			}
		}
	})
}

func changeAborts(s session) {
	s.Set(ctx, "k", "1", 0)
	err := s.Watch(ctx, func(tx *redis.Tx) error {
		equal("GET while watching", answer(tx.Get(ctx, "k").Result()), "1")
		s.Set(ctx, "k", "other", 0)
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "k", "mine", 0)
			return pipe.Set(ctx, "k2", "mine", 0).Err()
		})
		return err
	}, "k")
	equal("EXEC", err, redis.TxFailedErr)
	equal("nothing ran", answer(s.MGet(ctx, "k", "k2").Result()), []any{"other", nil})
}

func unwatched(s session) {
	var length *redis.IntCmd
	err := s.Watch(ctx, func(tx *redis.Tx) error {
		s.Set(ctx, "k", "other", 0)
		equal("UNWATCH", answer(tx.Unwatch(ctx).Result()), "OK")
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			length = pipe.Append(ctx, "k", "+mine")
			return nil
		})
		return err
	}, "k", "k2")
	equal("EXEC", []any{err, length.Val()}, []any{nil, int64(10)})
}

func retried(s session) {
	var seen []string
	var once sync.Once
	increment(s.Client, func(value string) {
		seen = append(seen, value)
		once.Do(func() { s.Set(ctx, "n", 10, 0) })
	})
	equal("it ran twice", seen, []string{"", "10"})
	equal("what it left", answer(s.Get(ctx, "n").Result()), "11")
	s.Set(ctx, "n", 0, 0)
	together(s, 5, func(_ int, own *redis.Client) {
		for range 20 {
			increment(own, func(string) {})
		}
	})
	equal("5 clients count to 100", answer(s.Get(ctx, "n").Result()), "100")
}

// increment counts `n` up by GET and SET, again after each conflict.
func increment(client *redis.Client, between func(value string)) {
	for {
		err := client.Watch(ctx, func(tx *redis.Tx) error {
			value, err := tx.Get(ctx, "n").Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			between(value)
			number, _ := strconv.Atoi(value)
			_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				return pipe.Set(ctx, "n", number+1, 0).Err()
			})
			return err
		}, "n")
		if !errors.Is(err, redis.TxFailedErr) {
			must("an increment", err)
			return
		}
	}
}
