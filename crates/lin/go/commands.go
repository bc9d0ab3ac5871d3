// The table of the model, and the commands on keys of any type.

package main

import (
	"maps"
	"strconv"
)

// A command is a row of the model.
type command struct {
	run func(t *tx, r request) reply
	// The positions of its keys: first, last (negative from the end), step.
	first, last, step int
	// Whether it changes nothing.
	reads bool
	// How many elements of its reply belong together, if their order says nothing.
	unordered int
}

var commands = merged(keyCommands, textCommands, listCommands, hashCommands, setCommands,
	scriptCommands)

func merged(families ...map[string]command) map[string]command {
	all := map[string]command{}
	for _, family := range families {
		maps.Copy(all, family)
	}
	return all
}

var keyCommands = map[string]command{
	"DEL":      {run: del, first: 1, last: -1, step: 1},
	"EXISTS":   {run: exists, first: 1, last: -1, step: 1, reads: true},
	"RENAME":   {run: rename, first: 1, last: 2, step: 1},
	"RENAMENX": {run: renameNX, first: 1, last: 2, step: 1},
	"COPY":     {run: copyKey, first: 1, last: 2, step: 1},
	"MOVE":     {run: move, first: 1, last: 1, step: 1},
	"PEXPIRE":  {run: pexpire, first: 1, last: 1, step: 1},
	"PERSIST":  {run: persist, first: 1, last: 1, step: 1},
	"SWAPDB":   {run: swapDB},
	"FLUSHALL": {run: flushAll},
	"FLUSHDB":  {run: flushDB},
	"WATCH":    {run: watchKeys, first: 1, last: -1, step: 1},
	"UNWATCH":  {run: unwatchKeys},
}

func (c command) keysOf(r request) []string {
	if c.step == 0 {
		return nil
	}
	last := c.last
	if last < 0 {
		last += len(r)
	}
	var keys []string
	for at := c.first; at <= last && at < len(r); at += c.step {
		keys = append(keys, r[at])
	}
	return keys
}

var wrongType = failure("WRONGTYPE")

func number(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

func mustNumber(s string) int64 {
	n, _ := number(s)
	return n
}

// on runs a command with the elements and the expiry of its first key, which must be of this kind.
func on(kind byte, run func(*tx, request, []string, window) reply) func(*tx, request) reply {
	return func(t *tx, r request) reply {
		v, wrong := t.readAs(r[1], kind)
		if wrong {
			return wrongType
		}
		items, gone := v.parts()
		return run(t, r, items, gone)
	}
}

func length(_ *tx, _ request, items []string, _ window) reply { return integer(int64(len(items))) }

// allItems: HGETALL, SMEMBERS, or LRANGE key 0 -1.
func allItems(_ *tx, _ request, items []string, _ window) reply { return texts(items) }

func del(t *tx, r request) reply {
	count := int64(0)
	for _, key := range r[1:] {
		if t.read(key) != nil {
			t.put(key, nil)
			count++
		}
	}
	return integer(count)
}

func exists(t *tx, r request) reply {
	count := int64(0)
	for _, key := range r[1:] {
		if t.read(key) != nil {
			count++
		}
	}
	return integer(count)
}

func rename(t *tx, r request) reply {
	v := t.read(r[1])
	if v == nil {
		return failure("ERR")
	}
	if r[1] != r[2] {
		t.put(r[2], v)
		t.put(r[1], nil)
	}
	return replyOK
}

func renameNX(t *tx, r request) reply {
	if t.read(r[1]) == nil {
		return failure("ERR")
	}
	if t.read(r[2]) != nil {
		return integer(0)
	}
	rename(t, r)
	return integer(1)
}

// copyKey: COPY source destination [DB n] [REPLACE].
func copyKey(t *tx, r request) reply {
	db, replace := t.operation.db, false
	for at := 3; at < len(r); at++ {
		switch r[at] {
		case "DB":
			db = int(mustNumber(r[at+1]))
			at++
		case "REPLACE":
			replace = true
		}
	}
	if db == t.operation.db && r[1] == r[2] {
		return failure("ERR")
	}
	v := t.read(r[1])
	to := t.model.slot(db, r[2])
	if v == nil || t.state.slots[to] != nil && !replace {
		return integer(0)
	}
	t.setSlot(to, v)
	return integer(1)
}

func move(t *tx, r request) reply {
	db := int(mustNumber(r[2]))
	if db == t.operation.db {
		return failure("ERR")
	}
	v, to := t.read(r[1]), t.model.slot(db, r[1])
	if v == nil || t.state.slots[to] != nil {
		return integer(0)
	}
	t.setSlot(to, v)
	t.put(r[1], nil)
	return integer(1)
}

func pexpire(t *tx, r request) reply {
	v := t.read(r[1])
	if v == nil {
		return integer(0)
	}
	t.put(r[1], newValue(v.kind, v.items, t.expiry(mustNumber(r[2]))))
	return integer(1)
}

func persist(t *tx, r request) reply {
	v := t.read(r[1])
	if v == nil || v.gone == (window{}) {
		return integer(0)
	}
	t.put(r[1], newValue(v.kind, v.items, window{}))
	return integer(1)
}

// swapDB exchanges the databases. A watch sees it where either of them has the key.
func swapDB(t *tx, r request) reply {
	one, other := int(mustNumber(r[1])), int(mustNumber(r[2]))
	for index := range len(t.model.keys) {
		a, b := one*len(t.model.keys)+index, other*len(t.model.keys)+index
		before, after := t.state.slots[a], t.state.slots[b]
		if one != other && (before != nil || after != nil) {
			t.setSlot(a, after)
			t.setSlot(b, before)
		}
	}
	return replyOK
}

func flushAll(t *tx, _ request) reply {
	t.flush(0, t.model.slots)
	return replyOK
}

func flushDB(t *tx, _ request) reply {
	from := t.operation.db * len(t.model.keys)
	t.flush(from, from+len(t.model.keys))
	return replyOK
}

func (t *tx) flush(from, to int) {
	for slot := from; slot < to; slot++ {
		if t.state.slots[slot] != nil {
			t.setSlot(slot, nil)
		}
	}
}

func watchKeys(t *tx, r request) reply {
	for _, key := range r[1:] {
		t.watch(key)
	}
	return replyOK
}

func unwatchKeys(t *tx, _ request) reply {
	t.unwatch()
	return replyOK
}
