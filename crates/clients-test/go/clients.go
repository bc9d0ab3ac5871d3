// The cases of cases/clients.txt.

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

const (
	channel = "news:sport"
	pattern = "news:*"
)

// clientCases has a library on one kind of connection. `admin` observes the server without it.
type clientCases struct {
	subject
	to    address
	admin *redis.Conn
}

var cases = map[string]func(clientCases){
	"connect: protocol and user":            clientCases.connected,
	"types: strings":                        clientCases.strings,
	"types: collections":                    clientCases.collections,
	"types: errors":                         clientCases.errors,
	"pipeline: replies in order":            clientCases.pipelineInOrder,
	"pipeline: an error inside":             clientCases.pipelineError,
	"transaction: replies in order":         clientCases.transactionInOrder,
	"transaction: a watched key":            clientCases.watched,
	"script: before and after SCRIPT FLUSH": clientCases.scriptFlushed,
	"script: an error":                      clientCases.scriptError,
	"pubsub: channel and pattern":           clientCases.pubsub,
	"pubsub: unsubscribed":                  clientCases.unsubscribed,
	"pubsub: shard channel":                 clientCases.shardChannel,
	"pubsub: after CLIENT KILL":             clientCases.pubsubKilled,
	"blocking: served":                      clientCases.served,
	"blocking: timed out":                   clientCases.timedOut,
	"reconnection: after CLIENT KILL":       clientCases.reconnection,
	"tracking: cached until invalidated":    clientCases.cached,
}

func (s clientCases) connected() {
	s.get("k")
	user := s.to.user
	if user == "" {
		user = "default"
	}
	own := fmt.Sprintf("id=%d ", s.admin.ClientID(ctx).Val())
	eventually("protocol and user", func() bool {
		lines := strings.Split(strings.TrimSpace(s.admin.ClientList(ctx).Val()), "\n")
		others := slices.DeleteFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, own)
		})
		return len(others) > 0 && !slices.ContainsFunc(others, func(line string) bool {
			line += " "
			return !strings.Contains(line, fmt.Sprintf(" resp=%d ", s.to.protocol)) ||
				!strings.Contains(line, " user="+user+" ")
		})
	})
}

func (s clientCases) strings() {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	equal("SET", s.set("k", "zażółć 🦀"), "OK")
	equal("GET", s.get("k"), "zażółć 🦀")
	equal("SET of every byte", s.set(string(every), string(every)), "OK")
	equal("every byte", s.get(string(every)), string(every))
	equal("GET of a missing key", s.get("none"), nil)
	equal("INCRBY", []any{s.incrBy("n", 41), s.incrBy("n", 1)}, []any{int64(41), int64(42)})
}

func (s clientCases) collections() {
	fields := map[string]string{"a": "1", "b": "2"}
	must("HSET", s.admin.HSet(ctx, "h", fields).Err())
	must("SADD", s.admin.SAdd(ctx, "s", "a", "b").Err())
	must("ZADD", s.admin.ZAdd(ctx, "z", redis.Z{Member: "b", Score: 2.5},
		redis.Z{Member: "a", Score: 1}).Err())
	equal("HGETALL", s.hGetAll("h"), fields)
	members, _ := s.sMembers("s").([]string)
	slices.Sort(members)
	equal("SMEMBERS", members, []string{"a", "b"})
	equal("ZRANGE WITHSCORES", s.zRange("z"), []scored{{"a", 1}, {"b", 2.5}})
}

func (s clientCases) errors() {
	s.set("k", "v")
	text := "WRONGTYPE Operation against a key holding the wrong kind of value"
	equal("LPUSH to a string", asText(s.lPush("k", "x")), text)
	equal("the connection stays usable", s.get("k"), "v")
}

func (s clientCases) pipelineInOrder() {
	var pairs [][2]string
	var want []any
	for i := range 1_000 {
		pairs = append(pairs, [2]string{fmt.Sprint("p:", i), fmt.Sprint(i)})
		want = append(want, "OK", fmt.Sprint(i))
	}
	equal("replies", s.pipeline(pairs), want)
}

func (s clientCases) pipelineError() {
	all := s.pipelineOfError("k")
	equal("the commands around it", []any{all[0], all[2]}, []any{"OK", "v"})
	err, _ := all[1].(error)
	// rueidis removes the code ERR.
	notInteger := "ERR value is not an integer or out of range"
	holds("the error", err != nil && strings.HasSuffix(notInteger, err.Error()), all[1])
}

func (s clientCases) transactionInOrder() {
	want := []any{int64(1), int64(2), []string{"a", "b"}, nil}
	equal("EXEC", s.transaction(), want)
}

func (s clientCases) watched() {
	change := func() { must("SET", s.admin.Set(ctx, "k", "other", 0).Err()) }
	equal("EXEC", s.appendWatched("k", "+mine", change), nil)
	equal("nothing ran", s.get("k"), "other")
	equal("retried", s.appendWatched("k", "+mine", func() {}), 10)
	equal("what it left", s.get("k"), "other+mine")
}

func (s clientCases) scriptFlushed() {
	run := s.script(shared("transfer.lua"))
	must("MSET", s.admin.MSet(ctx, "a", 100, "b", 1).Err())
	equal("the first run", run("a", "b", 10), []int64{90, 11})
	must("SCRIPT FLUSH", s.admin.ScriptFlush(ctx).Err())
	equal("the run after it", run("b", "a", 1), []int64{10, 91})
}

func (s clientCases) scriptError() {
	run := s.script(shared("transfer.lua"))
	equal("of the script", asText(run("a", "b", 1)), "POOR a has 0")
}

// inbox is a subscription to the channel and the pattern, with the messages that arrived.
type inbox struct {
	subscription
	mutex             sync.Mutex
	byName, byPattern []string
}

func (s clientCases) subscribed() *inbox {
	p := &inbox{}
	p.subscription = s.subscribe(channel, pattern, func(byPattern bool, text string) {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		if byPattern {
			p.byPattern = append(p.byPattern, text)
		} else {
			p.byName = append(p.byName, text)
		}
	})
	s.subscribers("both are subscribed", 1, 1)
	return p
}

// subscribers waits until the channel and the pattern have as many subscribers.
func (s clientCases) subscribers(name string, channels, patterns int64) {
	eventually(name, func() bool {
		counts := s.admin.PubSubNumSub(ctx, channel).Val()
		return counts[channel] == channels && s.admin.PubSubNumPat(ctx).Val() == patterns
	})
}

// arrived checks that exactly these messages came by channel and by pattern.
func (p *inbox) arrived(name string, byName, byPattern []string) {
	eventually(name, func() bool {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		return len(p.byName)+len(p.byPattern) >= len(byName)+len(byPattern)
	})
	p.mutex.Lock()
	defer p.mutex.Unlock()
	equal(name+": the channel's", p.byName, byName)
	equal(name+": the pattern's", p.byPattern, byPattern)
}

func (s clientCases) pubsub() {
	p := s.subscribed()
	var sent []string
	for i := range 100 {
		sent = append(sent, fmt.Sprint(i))
		equal("PUBLISH counts both", s.publish(channel, sent[i]), 2)
	}
	p.arrived("each arrives twice", sent, sent)
	p.close()
	s.subscribers("the end", 0, 0)
}

func (s clientCases) unsubscribed() {
	p := s.subscribed()
	p.leaveChannel()
	s.subscribers("the channel has no subscriber", 0, 1)
	equal("PUBLISH counts the pattern", s.publish(channel, "1"), 1)
	p.arrived("the pattern's message", nil, []string{"1"})
	p.leavePattern()
	s.subscribers("the pattern has no subscriber", 0, 0)
	equal("PUBLISH counts no client", s.publish(channel, "2"), 0)
	p.close()
	p.arrived("nothing more came", nil, []string{"1"})
}

func (s clientCases) pubsubKilled() {
	p := s.subscribed()
	s.publish(channel, "before")
	p.arrived("before", []string{"before"}, []string{"before"})
	s.kill()
	// PUBSUB may still count the closed connection.
	one := regexp.MustCompile(` p?sub=1\b`)
	eventually("it subscribes again", func() bool {
		return len(one.FindAllString(s.admin.ClientList(ctx).Val(), -1)) == 2
	})
	s.publish(channel, "after")
	both := []string{"before", "after"}
	p.arrived("after", both, both)
	p.close()
	s.subscribers("the end", 0, 0)
}

func (s clientCases) shardChannel() {
	library := s.subject.(sharding)
	got := make(chan string, 100)
	end := library.subscribeShard(channel, func(text string) { got <- text })
	subscribers := func(want int64) bool {
		return s.admin.PubSubShardNumSub(ctx, channel).Val()[channel] == want
	}
	eventually("it subscribes", func() bool { return subscribers(1) })
	for i := range 100 {
		equal("SPUBLISH counts it", library.publishShard(channel, fmt.Sprint(i)), 1)
	}
	for i := range 100 {
		equal("a message", <-got, fmt.Sprint(i))
	}
	end()
	eventually("the end", func() bool { return subscribers(0) })
}

func (s clientCases) served() {
	popped := make(chan any)
	go func() { popped <- s.blPop(30, "q", "other") }()
	waits := regexp.MustCompile(` flags=\w*b\w* .* cmd=blpop `)
	eventually("BLPOP waits", func() bool { return waits.MatchString(s.admin.ClientList(ctx).Val()) })
	equal("RPUSH", answer(s.admin.RPush(ctx, "q", "job").Result()), 1)
	equal("BLPOP", <-popped, []string{"q", "job"})
	equal("the list is empty", s.exists("q"), 0)
}

func (s clientCases) timedOut() {
	equal("BLPOP", s.blPop(0.05, "q"), nil)
}

func (s clientCases) reconnection() {
	// A library with several connections may fail a write on one that the last case killed.
	eventually("before", func() bool { return s.set("k", "v") == "OK" })
	s.kill()
	eventually("after", func() bool { return s.get("k") == "v" })
	eventually("INCR", func() bool { return s.incrBy("n", 1) == int64(1) })
}

func (s clientCases) cached() {
	get, end := s.subject.(tracking).cached()
	calls := regexp.MustCompile(`cmdstat_get:calls=\d+`)
	gets := func() string { return calls.FindString(s.admin.Info(ctx, "commandstats").Val()) }
	must("SET", s.admin.Set(ctx, "k", "old", 0).Err())
	equal("the first GET", get("k"), "old")
	before := gets()
	for range 10 {
		equal("more GETs", get("k"), "old")
	}
	equal("the server saw none of them", gets(), before)
	must("SET", s.admin.Set(ctx, "k", "new", 0).Err())
	eventually("SET invalidates it", func() bool { return get("k") == "new" })
	before = gets()
	equal("it is cached again", []any{get("k"), gets()}, []any{"new", before})
	must("FLUSHALL", s.admin.FlushAll(ctx).Err())
	eventually("FLUSHALL invalidates it", func() bool { return get("k") == nil })
	end()
}

// kill closes all connections except the admin's.
func (s clientCases) kill() {
	id := regexp.MustCompile(`(?m)^id=\d+ `)
	own := fmt.Sprintf("id=%d ", s.admin.ClientID(ctx).Val())
	old := id.FindAllString(s.admin.ClientList(ctx).Val(), -1)
	old = slices.DeleteFunc(old, func(id string) bool { return id == own })
	holds("there are connections", len(old) > 0, old)
	for _, kind := range []string{"normal", "pubsub"} {
		must("CLIENT KILL", s.admin.ClientKillByFilter(ctx, "TYPE", kind).Err())
	}
	eventually("the connections are closed", func() bool {
		lines := "\n" + s.admin.ClientList(ctx).Val()
		return !slices.ContainsFunc(old, func(id string) bool {
			return strings.Contains(lines, "\n"+id)
		})
	})
}
