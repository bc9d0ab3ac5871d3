// The model of lists, and of waiting for their elements.

package main

import "slices"

var listCommands = map[string]command{
	"LPUSH":     {run: on(valueList, push), first: 1, last: 1, step: 1},
	"RPUSH":     {run: on(valueList, push), first: 1, last: 1, step: 1},
	"LPOP":      {run: pop, first: 1, last: 1, step: 1},
	"RPOP":      {run: pop, first: 1, last: 1, step: 1},
	"LLEN":      {run: on(valueList, length), first: 1, last: 1, step: 1, reads: true},
	"LRANGE":    {run: on(valueList, allItems), first: 1, last: 1, step: 1, reads: true},
	"LMOVE":     {run: lmove, first: 1, last: 2, step: 1},
	"RPOPLPUSH": {run: lmove, first: 1, last: 2, step: 1},
	"BLPOP":     {run: blockingPop, first: 1, last: -2, step: 1},
	"BRPOP":     {run: blockingPop, first: 1, last: -2, step: 1},
	"BLMOVE":    {run: lmove, first: 1, last: 2, step: 1},
}

// A command that waits takes effect when it gets an element, or when it gives up while there is
// none: in the model it is the same as the one that does not wait. Only the order of its keys
// differs: a blocked client gets an element of the key that was written first.

func push(t *tx, r request, old []string, gone window) reply {
	list := slices.Clone(old)
	for _, element := range r[2:] {
		list = insert(list, element, r[0] == "LPUSH")
	}
	t.store(r[1], valueList, list, gone)
	return integer(int64(len(list)))
}

func insert(list []string, element string, left bool) []string {
	if left {
		return slices.Insert(list, 0, element)
	}
	return append(list, element)
}

// without is a list that is not empty without its first or last element, and the element.
func without(list []string, left bool) (rest []string, element string) {
	at := len(list) - 1
	if left {
		at = 0
	}
	return slices.Delete(slices.Clone(list), at, at+1), list[at]
}

// take removes an element from the end of a list that is not empty.
func (t *tx) take(key string, v *value, left bool) string {
	rest, element := without(v.items, left)
	t.store(key, valueList, rest, v.gone)
	return element
}

func pop(t *tx, r request) reply {
	v, wrong := t.readAs(r[1], valueList)
	switch {
	case wrong:
		return wrongType
	case v == nil:
		return replyNull
	}
	return text(t.take(r[1], v, r[0] == "LPOP"))
}

func blockingPop(t *tx, r request) reply {
	keys := r[1 : len(r)-1]
	if t.operation.form == single && len(keys) == 2 && t.choices.of(2) == 1 {
		keys = request{keys[1], keys[0]}
	}
	for _, key := range keys {
		v, wrong := t.readAs(key, valueList)
		switch {
		case wrong:
			return wrongType
		case v != nil:
			return texts([]string{key, t.take(key, v, r[0] == "BLPOP")})
		}
	}
	return replyNull
}

// lmove: LMOVE or BLMOVE source destination LEFT|RIGHT LEFT|RIGHT, or RPOPLPUSH.
func lmove(t *tx, r request) reply {
	fromLeft, toLeft := false, true
	if r[0] != "RPOPLPUSH" {
		fromLeft, toLeft = r[3] == "LEFT", r[4] == "LEFT"
	}
	v, wrong := t.readAs(r[1], valueList)
	switch {
	case wrong:
		return wrongType
	case v == nil:
		return replyNull
	}
	if _, wrong := t.readAs(r[2], valueList); wrong {
		return wrongType
	}
	if r[1] == r[2] {
		// The key stays, with its expiry, also when it has one element.
		rest, element := without(v.items, fromLeft)
		t.store(r[1], valueList, insert(rest, element, toLeft), v.gone)
		return text(element)
	}
	element := t.take(r[1], v, fromLeft)
	old, gone := t.read(r[2]).parts()
	t.store(r[2], valueList, insert(slices.Clone(old), element, toLeft), gone)
	return text(element)
}
