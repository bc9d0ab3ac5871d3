// What the cases in clients.go need of a client library.

package main

// subject is a library on one kind of connection. `any` is the reply's value, nil for a null reply,
// or the library's error.
type subject interface {
	set(key, value string) any
	get(key string) any
	incrBy(key string, amount int64) any
	exists(key string) any

	hGetAll(key string) any // map[string]string
	lPush(key, value string) any
	sMembers(key string) any // []string
	zRange(key string) any   // []scored

	// pipeline sends SET and GET of each pair in one pipeline.
	pipeline(pairs [][2]string) []any
	// pipelineOfError sends SET, INCR and GET in one pipeline.
	pipelineOfError(key string) []any
	// transaction sends INCR n, RPUSH l a b, LRANGE l and GET none.
	transaction() []any
	// appendWatched watches the key and sends APPEND in a transaction; nil if the key changed.
	appendWatched(key, text string, meanwhile func()) any
	// script returns a function that runs the source with two keys and an amount: []int64.
	script(source string) func(from, to string, amount int) any

	publish(channel, text string) any
	// subscribe calls `receive` with each message.
	subscribe(channel, pattern string, receive receiver) subscription
	// blPop returns the key and the value: []string.
	blPop(seconds float64, keys ...string) any

	close()
}

// tracking is a library that caches what it reads until the server invalidates it.
type tracking interface {
	// cached returns the GET of such a client, and a function that closes it.
	cached() (get func(key string) any, end func())
}

// sharding is a library that has shard channels.
type sharding interface {
	publishShard(channel, text string) any
	// subscribeShard returns a function that ends the subscription.
	subscribeShard(channel string, receive func(text string)) (end func())
}

// receiver gets a message and whether it came by the pattern.
type receiver func(byPattern bool, text string)

type subscription interface {
	leaveChannel()
	leavePattern()
	close()
}

type scored struct {
	member string
	score  float64
}
