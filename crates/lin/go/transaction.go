// How an operation runs on a state of the model.

package main

import "slices"

// A tx runs one operation on a copy of a state.
type tx struct {
	model     *model
	operation *operation
	choices   *choices
	state     state
	// Keys that could have expired and have not.
	present []int
}

// expire removes those keys that matter for the operation and are gone when it takes effect.
func (t *tx) expire() {
	o := t.operation
	for _, request := range o.requests {
		for _, key := range commands[request[0]].keysOf(request) {
			t.expireSlot(t.model.slot(o.db, key))
		}
	}
	if o.form != transaction {
		return
	}
	for _, w := range t.state.watches {
		if w.client == o.client {
			t.expireSlot(w.slot)
		}
	}
}

func (t *tx) expireSlot(slot int) {
	v := t.state.slots[slot]
	if v == nil || v.gone == (window{}) || t.operation.ret < v.gone.from {
		return
	}
	if slices.Contains(t.present, slot) {
		return
	}
	if t.operation.call > v.gone.to || t.choices.of(2) == 1 {
		t.setSlot(slot, nil)
		return
	}
	t.present = append(t.present, slot)
}

func (t *tx) run() reply {
	o := t.operation
	switch o.form {
	case single:
		return t.call(o.requests[0])
	case transaction:
		if t.unwatch() {
			return replyNull
		}
	}
	replies := make([]reply, len(o.requests))
	for i, request := range o.requests {
		replies[i] = t.call(request)
	}
	return array(replies)
}

func (t *tx) call(r request) reply { return commands[r[0]].run(t, r) }

// read is the value of a key in the selected database; nil if there is none.
func (t *tx) read(key string) *value { return t.state.slots[t.model.slot(t.operation.db, key)] }

// readAs is the value of a key, and whether it has another kind than the wanted one.
func (t *tx) readAs(key string, kind byte) (v *value, wrong bool) {
	v = t.read(key)
	return v, v != nil && v.kind != kind
}

// parts is what a key holds, and its expiry; nothing for none.
func (v *value) parts() ([]string, window) {
	if v == nil {
		return nil, window{}
	}
	return v.items, v.gone
}

// put changes the key, which the watches of all clients see.
func (t *tx) put(key string, v *value) { t.setSlot(t.model.slot(t.operation.db, key), v) }

// store puts a collection, or removes the key if the collection has become empty.
func (t *tx) store(key string, kind byte, items []string, gone window) {
	if len(items) == 0 {
		t.put(key, nil)
		return
	}
	t.put(key, newValue(kind, items, gone))
}

func (t *tx) setSlot(slot int, v *value) {
	t.state.slots[slot] = v
	for i := range t.state.watches {
		if t.state.watches[i].slot == slot {
			t.state.watches[i].touched = true
		}
	}
}

// watch makes the client watch a key.
func (t *tx) watch(key string) {
	w := watch{client: t.operation.client, slot: t.model.slot(t.operation.db, key)}
	order := func(a, b watch) int {
		if a.client != b.client {
			return a.client - b.client
		}
		return a.slot - b.slot
	}
	if at, known := slices.BinarySearchFunc(t.state.watches, w, order); !known {
		t.state.watches = slices.Insert(t.state.watches, at, w)
	}
}

// unwatch ends the client's watches, and says whether a key of them has changed.
func (t *tx) unwatch() bool {
	touched := false
	t.state.watches = slices.DeleteFunc(t.state.watches, func(w watch) bool {
		if w.client != t.operation.client {
			return false
		}
		touched = touched || w.touched
		return true
	})
	return touched
}

// expiry is when a key is gone that lives for some milliseconds from this operation on.
func (t *tx) expiry(ttlMs int64) window {
	const ms = 1_000_000
	w := window{from: t.operation.call + ttlMs*ms - clockSlack, to: never}
	if t.operation.ret != never {
		w.to = t.operation.ret + ttlMs*ms + clockSlack
	}
	return w
}
