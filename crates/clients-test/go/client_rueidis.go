// What the cases need, by the methods of rueidis.

package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

type rueidisClient struct {
	r       rueidis.Client
	options rueidis.ClientOption
}

func openRueidis(to address) subject {
	options := rueidis.ClientOption{
		InitAddress: []string{to.hostPort}, AlwaysRESP2: to.protocol == 2, TLSConfig: to.tls,
		Username: to.user, Password: to.password, DisableCache: true,
	}
	client, err := rueidis.NewClient(options)
	must("a client of rueidis", err)
	return rueidisClient{client, options}
}

// rueidisReply makes one value of a reply: nil for a null, or the error.
func rueidisReply[T any](value T, err error) any {
	if rueidis.IsRedisNil(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return value
}

func (s rueidisClient) close() { s.r.Close() }

func (s rueidisClient) do(command rueidis.Completed) rueidis.RedisResult {
	return s.r.Do(ctx, command)
}

func (s rueidisClient) set(key, value string) any {
	return rueidisReply(s.do(s.r.B().Set().Key(key).Value(value).Build()).ToString())
}
func (s rueidisClient) get(key string) any {
	return rueidisReply(s.do(s.r.B().Get().Key(key).Build()).ToString())
}
func (s rueidisClient) incrBy(key string, amount int64) any {
	return rueidisReply(s.do(s.r.B().Incrby().Key(key).Increment(amount).Build()).ToInt64())
}
func (s rueidisClient) exists(key string) any {
	return rueidisReply(s.do(s.r.B().Exists().Key(key).Build()).ToInt64())
}

func (s rueidisClient) hGetAll(key string) any {
	return rueidisReply(s.do(s.r.B().Hgetall().Key(key).Build()).AsStrMap())
}
func (s rueidisClient) lPush(key, value string) any {
	return rueidisReply(s.do(s.r.B().Lpush().Key(key).Element(value).Build()).ToInt64())
}
func (s rueidisClient) sMembers(key string) any {
	return rueidisReply(s.do(s.r.B().Smembers().Key(key).Build()).AsStrSlice())
}

func (s rueidisClient) zRange(key string) any {
	command := s.r.B().Zrange().Key(key).Min("0").Max("-1").Withscores().Build()
	found, err := s.do(command).AsZScores()
	must("ZRANGE", err)
	var all []scored
	for _, z := range found {
		all = append(all, scored{z.Member, z.Score})
	}
	return all
}

func (s rueidisClient) pipeline(pairs [][2]string) []any {
	var commands rueidis.Commands
	for _, pair := range pairs {
		commands = append(commands, s.r.B().Set().Key(pair[0]).Value(pair[1]).Build())
		commands = append(commands, s.r.B().Get().Key(pair[0]).Build())
	}
	return values(s.r.DoMulti(ctx, commands...))
}

func (s rueidisClient) pipelineOfError(key string) []any {
	b := s.r.B()
	return values(s.r.DoMulti(ctx, b.Set().Key(key).Value("v").Build(),
		b.Incr().Key(key).Build(), b.Get().Key(key).Build()))
}

func (s rueidisClient) transaction() (all []any) {
	must("a dedicated client", s.r.Dedicated(func(own rueidis.DedicatedClient) error {
		b := own.B()
		answers := own.DoMulti(ctx, b.Multi().Build(), b.Incr().Key("n").Build(),
			b.Rpush().Key("l").Element("a", "b").Build(),
			b.Lrange().Key("l").Start(0).Stop(-1).Build(), b.Get().Key("none").Build(),
			b.Exec().Build())
		messages, err := answers[len(answers)-1].ToArray()
		for _, message := range messages {
			all = append(all, value(message.ToAny()))
		}
		return err
	}))
	return all
}

// values of replies, which are integers, texts or lists of texts.
func values(results []rueidis.RedisResult) (all []any) {
	for _, result := range results {
		all = append(all, value(result.ToAny()))
	}
	return all
}

func value(got any, err error) any {
	if list, is := got.([]any); is && err == nil {
		var texts []string
		for _, text := range list {
			texts = append(texts, text.(string))
		}
		return texts
	}
	return rueidisReply(got, err)
}

func (s rueidisClient) appendWatched(key, text string, meanwhile func()) (length any) {
	must("a dedicated client", s.r.Dedicated(func(own rueidis.DedicatedClient) error {
		b := own.B()
		must("WATCH", own.Do(ctx, b.Watch().Key(key).Build()).Error())
		meanwhile()
		answers := own.DoMulti(ctx, b.Multi().Build(),
			b.Append().Key(key).Value(text).Build(), b.Exec().Build())
		messages, err := answers[2].ToArray()
		if rueidis.IsRedisNil(err) {
			return nil
		}
		must("EXEC", err)
		length = rueidisReply(messages[0].ToInt64())
		return nil
	}))
	return length
}

func (s rueidisClient) script(source string) func(from, to string, amount int) any {
	script := rueidis.NewLuaScript(source)
	return func(from, to string, amount int) any {
		given := []string{strconv.Itoa(amount)}
		return rueidisReply(script.Exec(ctx, s.r, []string{from, to}, given).AsIntSlice())
	}
}

func (s rueidisClient) publish(channel, text string) any {
	return rueidisReply(s.do(s.r.B().Publish().Channel(channel).Message(text).Build()).ToInt64())
}

type rueidisSubscription struct {
	rueidisClient
	channel, pattern string
	cancel           context.CancelFunc
}

// subscribe uses Receive, which subscribes again after each reconnection.
func (s rueidisClient) subscribe(channel, pattern string, receive receiver) subscription {
	scope, cancel := context.WithCancel(ctx)
	message := func(message rueidis.PubSubMessage) {
		receive(message.Pattern != "", message.Message)
	}
	go s.r.Receive(scope, s.r.B().Subscribe().Channel(channel).Build(), message)
	go s.r.Receive(scope, s.r.B().Psubscribe().Pattern(pattern).Build(), message)
	return rueidisSubscription{s, channel, pattern, cancel}
}

func (p rueidisSubscription) leaveChannel() {
	must("UNSUBSCRIBE", p.do(p.r.B().Unsubscribe().Channel(p.channel).Build()).Error())
}
func (p rueidisSubscription) leavePattern() {
	must("PUNSUBSCRIBE", p.do(p.r.B().Punsubscribe().Pattern(p.pattern).Build()).Error())
}
func (p rueidisSubscription) close() {
	p.cancel()
	p.leaveChannel()
	p.leavePattern()
}

func (s rueidisClient) publishShard(channel, text string) any {
	return rueidisReply(s.do(s.r.B().Spublish().Channel(channel).Message(text).Build()).ToInt64())
}

func (s rueidisClient) subscribeShard(channel string, receive func(text string)) (end func()) {
	scope, cancel := context.WithCancel(ctx)
	message := func(message rueidis.PubSubMessage) { receive(message.Message) }
	go s.r.Receive(scope, s.r.B().Ssubscribe().Channel(channel).Build(), message)
	return func() {
		cancel()
		must("SUNSUBSCRIBE", s.do(s.r.B().Sunsubscribe().Channel(channel).Build()).Error())
	}
}

// blPop retries if the pool for blocking commands returned a killed connection: rueidis itself
// retries only commands that read.
func (s rueidisClient) blPop(seconds float64, keys ...string) any {
	for {
		result := s.do(s.r.B().Blpop().Key(keys...).Timeout(seconds).Build())
		if !errors.Is(result.NonRedisError(), io.EOF) {
			return rueidisReply(result.AsStrSlice())
		}
	}
}

func (s rueidisClient) cached() (get func(key string) any, end func()) {
	options := s.options
	options.DisableCache = false
	own, err := rueidis.NewClient(options)
	must("a client of rueidis with a cache", err)
	get = func(key string) any {
		return rueidisReply(own.DoCache(ctx, own.B().Get().Key(key).Cache(), time.Minute).ToString())
	}
	return get, own.Close
}
