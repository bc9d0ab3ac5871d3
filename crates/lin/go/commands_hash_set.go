// The model of hashes and sets.

package main

import (
	"slices"
	"strconv"
)

var hashCommands = map[string]command{
	"HSET":    {run: on(valueHash, hset), first: 1, last: 1, step: 1},
	"HGET":    {run: on(valueHash, hget), first: 1, last: 1, step: 1, reads: true},
	"HDEL":    {run: on(valueHash, hdel), first: 1, last: 1, step: 1},
	"HINCRBY": {run: on(valueHash, hincrBy), first: 1, last: 1, step: 1},
	"HGETALL": {run: on(valueHash, allItems), first: 1, last: 1, step: 1, reads: true, unordered: 2},
}

var setCommands = map[string]command{
	"SADD":      {run: on(valueSet, sadd), first: 1, last: 1, step: 1},
	"SREM":      {run: on(valueSet, srem), first: 1, last: 1, step: 1},
	"SMOVE":     {run: smove, first: 1, last: 2, step: 1},
	"SCARD":     {run: on(valueSet, length), first: 1, last: 1, step: 1, reads: true},
	"SISMEMBER": {run: on(valueSet, sisMember), first: 1, last: 1, step: 1, reads: true},
	"SMEMBERS": {
		run: on(valueSet, allItems), first: 1, last: 1, step: 1, reads: true, unordered: 1,
	},
	"SUNIONSTORE": {run: sunionStore, first: 1, last: -1, step: 1},
}

// field finds the position of a field among fields and values in turn, or where it would be.
func field(items []string, name string) (at int, found bool) {
	for at < len(items) && items[at] < name {
		at += 2
	}
	return at, at < len(items) && items[at] == name
}

func hset(t *tx, r request, old []string, gone window) reply {
	items, added := slices.Clone(old), int64(0)
	for i := 2; i+1 < len(r); i += 2 {
		at, found := field(items, r[i])
		if found {
			items[at+1] = r[i+1]
		} else {
			items = slices.Insert(items, at, r[i], r[i+1])
			added++
		}
	}
	t.store(r[1], valueHash, items, gone)
	return integer(added)
}

func hget(_ *tx, r request, items []string, _ window) reply {
	if at, found := field(items, r[2]); found {
		return text(items[at+1])
	}
	return replyNull
}

func hdel(t *tx, r request, old []string, gone window) reply {
	items := slices.Clone(old)
	for _, name := range r[2:] {
		if at, found := field(items, name); found {
			items = slices.Delete(items, at, at+2)
		}
	}
	removed := (len(old) - len(items)) / 2
	if removed > 0 {
		t.store(r[1], valueHash, items, gone)
	}
	return integer(int64(removed))
}

func hincrBy(t *tx, r request, items []string, gone window) reply {
	sum := mustNumber(r[3])
	if at, found := field(items, r[2]); found {
		old, isNumber := number(items[at+1])
		if !isNumber {
			return failure("ERR")
		}
		sum += old
	}
	hset(t, request{"HSET", r[1], r[2], strconv.FormatInt(sum, 10)}, items, gone)
	return integer(sum)
}

func sadd(t *tx, r request, old []string, gone window) reply {
	items := slices.Clone(old)
	for _, member := range r[2:] {
		if at, found := slices.BinarySearch(items, member); !found {
			items = slices.Insert(items, at, member)
		}
	}
	if len(items) > len(old) {
		t.store(r[1], valueSet, items, gone)
	}
	return integer(int64(len(items) - len(old)))
}

func srem(t *tx, r request, old []string, gone window) reply {
	items := slices.Clone(old)
	for _, member := range r[2:] {
		if at, found := slices.BinarySearch(items, member); found {
			items = slices.Delete(items, at, at+1)
		}
	}
	if len(items) < len(old) {
		t.store(r[1], valueSet, items, gone)
	}
	return integer(int64(len(old) - len(items)))
}

func smove(t *tx, r request) reply {
	from, wrong := t.readAs(r[1], valueSet)
	if from == nil {
		return integer(0)
	}
	if _, wrongTo := t.readAs(r[2], valueSet); wrong || wrongTo {
		return wrongType
	}
	_, found := slices.BinarySearch(from.items, r[3])
	if found && r[1] != r[2] {
		on(valueSet, srem)(t, request{"SREM", r[1], r[3]})
		on(valueSet, sadd)(t, request{"SADD", r[2], r[3]})
	}
	return oneOrZero(found)
}

func sisMember(_ *tx, r request, items []string, _ window) reply {
	_, found := slices.BinarySearch(items, r[2])
	return oneOrZero(found)
}

// sunionStore: SUNIONSTORE destination key key.
func sunionStore(t *tx, r request) reply {
	var union []string
	for _, key := range r[2:] {
		v, wrong := t.readAs(key, valueSet)
		if wrong {
			return wrongType
		}
		items, _ := v.parts()
		union = append(union, items...)
	}
	slices.Sort(union)
	union = slices.Compact(union)
	if len(union) > 0 || t.read(r[1]) != nil {
		t.store(r[1], valueSet, union, window{})
	}
	return integer(int64(len(union)))
}
