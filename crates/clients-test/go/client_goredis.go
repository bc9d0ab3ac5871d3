// What the cases need, by the methods of go-redis.

package main

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

type goRedis struct {
	r *redis.Client
}

func openGoRedis(to address) subject {
	options := redis.Options{
		Addr: to.hostPort, Protocol: to.protocol, TLSConfig: to.tls,
		Username: to.user, Password: to.password,
	}
	return goRedis{redis.NewClient(&options)}
}

func (s goRedis) close() { s.r.Close() }

func (s goRedis) set(key, value string) any { return answer(s.r.Set(ctx, key, value, 0).Result()) }
func (s goRedis) get(key string) any        { return answer(s.r.Get(ctx, key).Result()) }
func (s goRedis) incrBy(key string, amount int64) any {
	return answer(s.r.IncrBy(ctx, key, amount).Result())
}
func (s goRedis) exists(key string) any { return answer(s.r.Exists(ctx, key).Result()) }

func (s goRedis) hGetAll(key string) any      { return answer(s.r.HGetAll(ctx, key).Result()) }
func (s goRedis) lPush(key, value string) any { return answer(s.r.LPush(ctx, key, value).Result()) }
func (s goRedis) sMembers(key string) any     { return answer(s.r.SMembers(ctx, key).Result()) }

func (s goRedis) zRange(key string) any {
	var all []scored
	for _, z := range s.r.ZRangeWithScores(ctx, key, 0, -1).Val() {
		all = append(all, scored{z.Member.(string), z.Score})
	}
	return all
}

func (s goRedis) pipeline(pairs [][2]string) []any {
	return replies(s.r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, pair := range pairs {
			pipe.Set(ctx, pair[0], pair[1], 0)
			pipe.Get(ctx, pair[0])
		}
		return nil
	}))
}

func (s goRedis) pipelineOfError(key string) []any {
	return replies(s.r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, key, "v", 0)
		pipe.Incr(ctx, key)
		return pipe.Get(ctx, key).Err()
	}))
}

func (s goRedis) transaction() []any {
	return replies(s.r.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Incr(ctx, "n")
		pipe.RPush(ctx, "l", "a", "b")
		pipe.LRange(ctx, "l", 0, -1)
		return pipe.Get(ctx, "none").Err()
	}))
}

// replies of a pipeline. Its error is that of the first command that failed.
func replies(commands []redis.Cmder, _ error) []any {
	var all []any
	for _, command := range commands {
		switch command := command.(type) {
		case *redis.StatusCmd:
			all = append(all, answer(command.Result()))
		case *redis.StringCmd:
			all = append(all, answer(command.Result()))
		case *redis.IntCmd:
			all = append(all, answer(command.Result()))
		case *redis.StringSliceCmd:
			all = append(all, answer(command.Result()))
		}
	}
	return all
}

func (s goRedis) appendWatched(key, text string, meanwhile func()) any {
	var length *redis.IntCmd
	err := s.r.Watch(ctx, func(tx *redis.Tx) error {
		meanwhile()
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			length = pipe.Append(ctx, key, text)
			return nil
		})
		return err
	}, key)
	if errors.Is(err, redis.TxFailedErr) {
		return nil
	}
	must("WATCH", err)
	return answer(length.Result())
}

func (s goRedis) script(source string) func(from, to string, amount int) any {
	script := redis.NewScript(source)
	return func(from, to string, amount int) any {
		return answer(script.Run(ctx, s.r, []string{from, to}, amount).Int64Slice())
	}
}

func (s goRedis) publish(channel, text string) any {
	return answer(s.r.Publish(ctx, channel, text).Result())
}

type goRedisSubscription struct {
	*redis.PubSub
	channel, pattern string
}

func (s goRedis) subscribe(channel, pattern string, receive receiver) subscription {
	own := s.r.Subscribe(ctx, channel)
	must("PSUBSCRIBE", own.PSubscribe(ctx, pattern))
	for range 2 {
		_, err := own.Receive(ctx)
		must("a confirmation", err)
	}
	go func() {
		for message := range own.Channel() {
			receive(message.Pattern != "", message.Payload)
		}
	}()
	return goRedisSubscription{own, channel, pattern}
}

func (p goRedisSubscription) leaveChannel() { must("UNSUBSCRIBE", p.Unsubscribe(ctx, p.channel)) }
func (p goRedisSubscription) leavePattern() { must("PUNSUBSCRIBE", p.PUnsubscribe(ctx, p.pattern)) }
func (p goRedisSubscription) close()        { p.Close() }

func (s goRedis) publishShard(channel, text string) any {
	return answer(s.r.SPublish(ctx, channel, text).Result())
}

func (s goRedis) subscribeShard(channel string, receive func(text string)) (end func()) {
	own := s.r.SSubscribe(ctx, channel)
	go func() {
		for message := range own.Channel() {
			receive(message.Payload)
		}
	}()
	return func() { own.Close() }
}

func (s goRedis) blPop(seconds float64, keys ...string) any {
	wait := time.Duration(seconds * float64(time.Second))
	return answer(s.r.BLPop(ctx, wait, keys...).Result())
}

func (s goRedis) cached() (get func(key string) any, end func()) {
	options := *s.r.Options()
	options.ClientSideCacheConfig = &redis.ClientSideCacheConfig{}
	own := goRedis{redis.NewClient(&options)}
	return own.get, own.close
}
