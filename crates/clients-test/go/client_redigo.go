// What the cases need, by the methods of redigo: it speaks only RESP2 and has one method for all
// commands. Its pool reconnects; a subscriber reconnects in its own loop.

package main

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

type redigo struct {
	pool *redis.Pool
	dial func() (redis.Conn, error)
}

func openRedigo(to address) subject {
	dial := func() (redis.Conn, error) {
		return redis.Dial("tcp", to.hostPort, redis.DialUseTLS(to.tls != nil),
			redis.DialTLSConfig(to.tls), redis.DialUsername(to.user),
			redis.DialPassword(to.password))
	}
	ping := func(own redis.Conn, _ time.Time) error {
		_, err := own.Do("PING")
		return err
	}
	return redigo{&redis.Pool{MaxIdle: 2, Dial: dial, TestOnBorrow: ping}, dial}
}

func redigoReply[T any](value T, err error) any {
	if errors.Is(err, redis.ErrNil) {
		return nil
	}
	if err != nil {
		return err
	}
	return value
}

func (s redigo) close() { s.pool.Close() }

func (s redigo) do(command string, args ...any) (any, error) {
	own := s.pool.Get()
	defer own.Close()
	return own.Do(command, args...)
}

func (s redigo) set(key, value string) any {
	return redigoReply(redis.String(s.do("SET", key, value)))
}
func (s redigo) get(key string) any { return redigoReply(redis.String(s.do("GET", key))) }
func (s redigo) incrBy(key string, amount int64) any {
	return redigoReply(redis.Int64(s.do("INCRBY", key, amount)))
}
func (s redigo) exists(key string) any { return redigoReply(redis.Int64(s.do("EXISTS", key))) }

func (s redigo) hGetAll(key string) any {
	return redigoReply(redis.StringMap(s.do("HGETALL", key)))
}
func (s redigo) lPush(key, value string) any {
	return redigoReply(redis.Int64(s.do("LPUSH", key, value)))
}
func (s redigo) sMembers(key string) any {
	return redigoReply(redis.Strings(s.do("SMEMBERS", key)))
}

func (s redigo) zRange(key string) any {
	flat, err := redis.Values(s.do("ZRANGE", key, 0, -1, "WITHSCORES"))
	must("ZRANGE", err)
	var all []scored
	for len(flat) > 0 {
		var next scored
		flat, err = redis.Scan(flat, &next.member, &next.score)
		must("ZRANGE", err)
		all = append(all, next)
	}
	return all
}

// queued is a command for Send.
type queued struct {
	name string
	args redis.Args
}

// send pipelines the commands and returns their replies.
func (s redigo) send(commands ...queued) (all []any) {
	own := s.pool.Get()
	defer own.Close()
	for _, command := range commands {
		must("Send", own.Send(command.name, command.args...))
	}
	must("Flush", own.Flush())
	for range commands {
		all = append(all, redigoValue(own.Receive()))
	}
	return all
}

func redigoValue(got any, err error) any {
	switch got := got.(type) {
	case []byte:
		return string(got)
	case []any:
		return redigoReply(redis.Strings(got, err))
	case redis.Error:
		return error(got)
	default:
		return redigoReply(got, err)
	}
}

func (s redigo) pipeline(pairs [][2]string) []any {
	var commands []queued
	for _, pair := range pairs {
		commands = append(commands, queued{"SET", redis.Args{pair[0], pair[1]}})
		commands = append(commands, queued{"GET", redis.Args{pair[0]}})
	}
	return s.send(commands...)
}

func (s redigo) pipelineOfError(key string) []any {
	return s.send(queued{"SET", redis.Args{key, "v"}}, queued{"INCR", redis.Args{key}},
		queued{"GET", redis.Args{key}})
}

func (s redigo) transaction() (all []any) {
	own := s.pool.Get()
	defer own.Close()
	own.Send("MULTI")
	own.Send("INCR", "n")
	own.Send("RPUSH", "l", "a", "b")
	own.Send("LRANGE", "l", 0, -1)
	own.Send("GET", "none")
	answers, err := redis.Values(own.Do("EXEC"))
	must("EXEC", err)
	for _, one := range answers {
		all = append(all, redigoValue(one, nil))
	}
	return all
}

func (s redigo) appendWatched(key, text string, meanwhile func()) any {
	own := s.pool.Get()
	defer own.Close()
	_, err := own.Do("WATCH", key)
	must("WATCH", err)
	meanwhile()
	own.Send("MULTI")
	own.Send("APPEND", key, text)
	lengths, err := redis.Int64s(own.Do("EXEC"))
	if errors.Is(err, redis.ErrNil) {
		return nil
	}
	must("EXEC", err)
	return lengths[0]
}

func (s redigo) script(source string) func(from, to string, amount int) any {
	script := redis.NewScript(2, source)
	return func(from, to string, amount int) any {
		own := s.pool.Get()
		defer own.Close()
		return redigoReply(redis.Int64s(script.Do(own, from, to, amount)))
	}
}

func (s redigo) publish(channel, text string) any {
	return redigoReply(redis.Int64(s.do("PUBLISH", channel, text)))
}

type redigoSubscription struct {
	mutex            sync.Mutex
	own              redis.PubSubConn
	closed           atomic.Bool
	channel, pattern string
}

// subscribe reconnects in a loop, as users of redigo write it.
func (s redigo) subscribe(channel, pattern string, receive receiver) subscription {
	p := &redigoSubscription{channel: channel, pattern: pattern}
	must("a subscription", p.open(s.dial))
	go func() {
		for !p.closed.Load() {
			switch message := p.own.Receive().(type) {
			case redis.Message:
				receive(message.Pattern != "", string(message.Data))
			case error:
				for !p.closed.Load() && p.open(s.dial) != nil {
					time.Sleep(time.Millisecond)
				}
			}
		}
	}()
	return p
}

func (p *redigoSubscription) open(dial func() (redis.Conn, error)) error {
	own, err := dial()
	if err != nil {
		return err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.own = redis.PubSubConn{Conn: own}
	return errors.Join(p.own.Subscribe(p.channel), p.own.PSubscribe(p.pattern))
}

func (p *redigoSubscription) leaveChannel() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	must("UNSUBSCRIBE", p.own.Unsubscribe(p.channel))
}

func (p *redigoSubscription) leavePattern() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	must("PUNSUBSCRIBE", p.own.PUnsubscribe(p.pattern))
}

func (p *redigoSubscription) close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.closed.Store(true)
	p.own.Close()
}

func (s redigo) blPop(seconds float64, keys ...string) any {
	own := s.pool.Get()
	defer own.Close()
	args := redis.Args{}.AddFlat(keys).Add(seconds)
	wait := time.Duration(seconds*float64(time.Second)) + 10*time.Second
	return redigoReply(redis.Strings(redis.DoWithTimeout(own, wait, "BLPOP", args...)))
}
