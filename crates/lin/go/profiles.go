// Which commands are sent to which keys.

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A profile is a kind of history: few keys, and the commands that are sent to them.
type profile struct {
	name string
	// How many keys of each type it has.
	keys map[string]int
	mix  []template
	// How many connections share its keys. More of them make more orders possible, which costs
	// the checker more than it finds.
	connectionsMax int
	// The bytes that are added to a value.
	padding int
	// Whether it has the server for itself and uses two databases.
	whole bool
}

// A template is a command with placeholders, and its weight among the other templates.
type template struct {
	weight int
	words  []string
}

// The placeholders are the types of key (<text> <counter> <list> <hash> <set>), and
//
//	<value>  a new text that no other command writes
//	<n>      a small number
//	<offset> an offset in a text
//	<field>  the name of a field or member
//	<ttl>    a time to live in milliseconds
//	<wait>   the seconds that a command waits
const (
	textMix = `
10 GET <text>
 8 SET <text> <value>
 2 SET <text> <value> NX
 1 SET <text> <value> XX
 3 SET <text> <value> GET
 4 GETSET <text> <value>
 2 GETDEL <text>
 3 APPEND <text> <value>
 2 SETRANGE <text> <offset> <value>
 1 STRLEN <text>
 2 DEL <text>
 1 DEL <text> <text>
 2 EXISTS <text> <text>
 6 MSET <text> <value> <text> <value>
 1 MSETNX <text> <value> <text> <value>
 8 MGET <text> <text> <text>
 3 RENAME <text> <text>
 1 RENAMENX <text> <text>
 1 COPY <text> <text>
 3 COPY <text> <text> REPLACE
 2 script-cas <text> <value> <value>
 3 script-swap <text> <text>`

	counterMix = `
10 INCR <counter>
 4 INCRBY <counter> <n>
 5 DECR <counter>
 6 GET <counter>
 5 MGET <counter> <counter>
 3 SET <counter> <n>
 3 MSET <counter> <n> <counter> <n>
 2 GETSET <counter> <n>
 1 DEL <counter>
 1 RENAME <counter> <counter>
 2 COPY <counter> <counter> REPLACE
 3 script-pay <counter> <counter>
 2 script-cas <counter> <n> <n>`

	listMix = `
 8 LPUSH <list> <value>
 4 RPUSH <list> <value>
 2 RPUSH <list> <value> <value>
 6 RPOP <list>
 5 LPOP <list>
 4 LLEN <list>
 6 LRANGE <list> 0 -1
 4 LMOVE <list> <list> RIGHT LEFT
 2 LMOVE <list> <list> LEFT LEFT
 2 RPOPLPUSH <list> <list>
 4 BLPOP <list> <list> <wait>
 2 BRPOP <list> <wait>
 4 BLMOVE <list> <list> LEFT RIGHT <wait>
 3 RENAME <list> <list>
 1 RENAMENX <list> <list>
 2 COPY <list> <list> REPLACE
 2 DEL <list>`

	hashMix = `
 5 HSET <hash> <field> <value>
 4 HSET <hash> a <n> b <n>
 5 HINCRBY <hash> a <n>
 3 HINCRBY <hash> b <n>
 8 HGETALL <hash>
 4 HGET <hash> <field>
 3 HDEL <hash> <field>
 1 HDEL <hash> a b
 2 RENAME <hash> <hash>
 3 COPY <hash> <hash> REPLACE
 1 DEL <hash>`

	setMix = `
 6 SADD <set> <field>
 2 SADD <set> <field> <field>
 4 SREM <set> <field>
 8 SMOVE <set> <set> <field>
 6 SMEMBERS <set>
 3 SISMEMBER <set> <field>
 3 SCARD <set>
 3 SUNIONSTORE <set> <set> <set>
 2 RENAME <set> <set>
 2 COPY <set> <set> REPLACE
 1 DEL <set>`

	expiryMix = `
 8 SET <text> <value> PX <ttl>
 2 SET <text> <value> NX PX <ttl>
 2 SET <text> <value>
10 GET <text>
 5 MGET <text> <text>
 3 PEXPIRE <text> <ttl>
 2 PERSIST <text>
 2 APPEND <text> <value>
 1 GETSET <text> <value>
 2 EXISTS <text> <text>
 1 DEL <text>
 2 RENAME <text> <text>
 2 COPY <text> <text> REPLACE
 2 LPUSH <list> <value>
 2 PEXPIRE <list> <ttl>
 2 LLEN <list>
 1 LMOVE <list> <list> LEFT RIGHT`

	largeMix = `
 8 GET <text>
 6 SET <text> <value>
 2 GETSET <text> <value>
 1 GETDEL <text>
 1 SETRANGE <text> <offset> <n>
 2 STRLEN <text>
 3 MSET <text> <value> <text> <value>
 3 MGET <text> <text>
 2 RENAME <text> <text>
 2 COPY <text> <text> REPLACE`

	wholeMix = `
 8 GET <text>
 8 SET <text> <value>
 4 MSET <text> <value> <text> <value>
 8 MGET <text> <text>
 2 GETSET <text> <value>
 2 DEL <text>
 2 RENAME <text> <text>
 3 COPY <text> <text> DB 1 REPLACE
 3 COPY <text> <text> DB 0 REPLACE
 2 MOVE <text> 0
 2 MOVE <text> 1
 3 SWAPDB 0 1
 2 FLUSHALL
 2 FLUSHDB`
)

var profiles = []*profile{
	newProfile("registers", "text=3", textMix),
	newProfile("counters", "counter=3", counterMix),
	newProfile("lists", "list=3", listMix),
	newProfile("hashes", "hash=2", hashMix),
	newProfile("sets", "set=3", setMix),
	newProfile("expiry", "text=3 list=1", expiryMix),
	newProfile("large", "text=2", largeMix),
	newProfile("mixed", "text=2 counter=1 list=1 hash=1 set=2",
		textMix, counterMix, listMix, hashMix, setMix),
	newProfile("whole", "text=2", wholeMix),
}

func newProfile(name, keys string, mixes ...string) *profile {
	p := &profile{name: name, keys: map[string]int{}, connectionsMax: groupMax}
	switch name {
	case "whole":
		p.whole, p.connectionsMax = true, 6
	case "expiry":
		// A key that may be gone doubles the orders.
		p.connectionsMax = 5
	case "large":
		// Beyond the size from which a value is shared between the key and the replies.
		p.padding, p.connectionsMax = 20<<10, 6
	}
	for _, part := range strings.Fields(keys) {
		kind, count, _ := strings.Cut(part, "=")
		p.keys[kind] = int(mustNumber(count))
	}
	for _, mix := range mixes {
		for _, line := range strings.Split(strings.TrimSpace(mix), "\n") {
			words := strings.Fields(line)
			weight, err := strconv.Atoi(words[0])
			if err != nil {
				panic(fmt.Sprintf("%q has no weight", line))
			}
			if _, known := commands[words[1]]; !known {
				panic(fmt.Sprintf("%q is not in the model", line))
			}
			p.mix = append(p.mix, template{weight, words[1:]})
		}
	}
	return p
}

// keyNames are the names of all keys below a prefix, and by their type.
func (p *profile) keyNames(prefix string) (all []string, byType map[string][]string) {
	byType = map[string][]string{}
	for _, kind := range []string{"text", "counter", "list", "hash", "set"} {
		for i := range p.keys[kind] {
			name := fmt.Sprintf("%s:%s%d", prefix, kind, i)
			all = append(all, name)
			byType[kind] = append(byType[kind], name)
		}
	}
	return all, byType
}

func (t template) waits() bool {
	return slices.Contains([]string{"BLPOP", "BRPOP", "BLMOVE"}, t.words[0])
}

func (t template) isScript() bool { return strings.HasPrefix(t.words[0], "script-") }

func (t template) reads() bool { return commands[t.words[0]].reads }
