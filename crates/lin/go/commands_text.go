// The model of strings and counters.

package main

import (
	"strconv"
	"strings"
)

var textCommands = map[string]command{
	"GET":      {run: get, first: 1, last: 1, step: 1, reads: true},
	"SET":      {run: set, first: 1, last: 1, step: 1},
	"GETSET":   {run: getSet, first: 1, last: 1, step: 1},
	"GETDEL":   {run: getDel, first: 1, last: 1, step: 1},
	"APPEND":   {run: on(valueText, appendText), first: 1, last: 1, step: 1},
	"SETRANGE": {run: on(valueText, setRange), first: 1, last: 1, step: 1},
	"STRLEN":   {run: on(valueText, strLen), first: 1, last: 1, step: 1, reads: true},
	"INCR":     {run: incr, first: 1, last: 1, step: 1},
	"DECR":     {run: decr, first: 1, last: 1, step: 1},
	"INCRBY":   {run: incrBy, first: 1, last: 1, step: 1},
	"MSET":     {run: mset, first: 1, last: -1, step: 2},
	"MSETNX":   {run: msetNX, first: 1, last: -1, step: 2},
	"MGET":     {run: mget, first: 1, last: -1, step: 1, reads: true},
}

func get(t *tx, r request) reply {
	v, wrong := t.readAs(r[1], valueText)
	switch {
	case wrong:
		return wrongType
	case v == nil:
		return replyNull
	}
	return text(v.items[0])
}

func (t *tx) putText(key, s string, gone window) {
	t.put(key, newValue(valueText, []string{s}, gone))
}

// set: SET key value [NX|XX] [GET] [PX ms].
func set(t *tx, r request) reply {
	gone, old, said := window{}, t.read(r[1]), replyOK
	hold := false
	for at := 3; at < len(r); at++ {
		switch r[at] {
		case "NX":
			hold = old != nil
		case "XX":
			hold = old == nil
		case "GET":
			if said = get(t, r); said.kind == kindError {
				return said
			}
		case "PX":
			gone = t.expiry(mustNumber(r[at+1]))
			at++
		}
	}
	if hold {
		return replyNull
	}
	t.putText(r[1], r[2], gone)
	return said
}

func getSet(t *tx, r request) reply {
	said := get(t, r)
	if said.kind != kindError {
		t.putText(r[1], r[2], window{})
	}
	return said
}

func getDel(t *tx, r request) reply {
	said := get(t, r)
	if said.kind == kindText {
		t.put(r[1], nil)
	}
	return said
}

func appendText(t *tx, r request, old []string, gone window) reply {
	s := strings.Join(old, "") + r[2]
	t.putText(r[1], s, gone)
	return integer(int64(len(s)))
}

func setRange(t *tx, r request, old []string, gone window) reply {
	at, part := int(mustNumber(r[2])), r[3]
	bytes := []byte(strings.Join(old, ""))
	for len(bytes) < at+len(part) {
		bytes = append(bytes, 0)
	}
	copy(bytes[at:], part)
	t.putText(r[1], string(bytes), gone)
	return integer(int64(len(bytes)))
}

func strLen(_ *tx, _ request, old []string, _ window) reply {
	return integer(int64(len(strings.Join(old, ""))))
}

func (t *tx) add(key string, by int64) reply {
	v, wrong := t.readAs(key, valueText)
	if wrong {
		return wrongType
	}
	sum, gone := by, window{}
	if v != nil {
		old, isNumber := number(v.items[0])
		if !isNumber {
			return failure("ERR")
		}
		sum, gone = old+by, v.gone
	}
	t.putText(key, strconv.FormatInt(sum, 10), gone)
	return integer(sum)
}

func incr(t *tx, r request) reply   { return t.add(r[1], 1) }
func decr(t *tx, r request) reply   { return t.add(r[1], -1) }
func incrBy(t *tx, r request) reply { return t.add(r[1], mustNumber(r[2])) }

func mset(t *tx, r request) reply {
	for at := 1; at+1 < len(r); at += 2 {
		t.putText(r[at], r[at+1], window{})
	}
	return replyOK
}

func msetNX(t *tx, r request) reply {
	for at := 1; at+1 < len(r); at += 2 {
		if t.read(r[at]) != nil {
			return integer(0)
		}
	}
	mset(t, r)
	return integer(1)
}

func mget(t *tx, r request) reply {
	items := make([]reply, len(r)-1)
	for i, key := range r[1:] {
		items[i] = replyNull
		if v, wrong := t.readAs(key, valueText); v != nil && !wrong {
			items[i] = text(v.items[0])
		}
	}
	return array(items)
}
