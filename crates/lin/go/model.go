// The states of the model and its steps.

package main

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// The model is a server without concurrency that holds the keys of one history. A state is never
// changed, a step makes another.
//
// Time is the one thing that a linearization does not order: a key with an expiry may be gone from
// one moment on and must be gone from another on (see `window`). In between both are possible, and
// a step has two results. It is decided when an operation meets the key, and what is gone is gone.

// Kinds of value.
const (
	valueText = iota
	valueList
	valueHash // fields and values in turn, sorted by field
	valueSet  // sorted
)

// A window is when a key may be gone, on the clock of the history. None for a key that stays.
type window struct{ from, to int64 }

// clockSlack is by how much the server's clock may differ from that of the history: it counts whole
// milliseconds, and a thread reads it at times and not for each request.
const clockSlack = int64(20 * time.Millisecond)

// A value of a key. A text is its one item.
type value struct {
	kind  byte
	items []string
	gone  window
	hash  uint64
}

// A watch is a key that a client watches.
type watch struct {
	client, slot int
	touched      bool
}

// A cursor counts what has taken effect of a batch that has begun and not ended.
type cursor struct{ client, next int }

type state struct {
	// By database and key.
	slots   []*value
	watches []watch
	cursors []cursor
}

type model struct {
	keys  map[string]int
	slots int
}

const databases = 2

func newModel(keys []string) *model {
	m := &model{keys: map[string]int{}, slots: databases * len(keys)}
	for i, key := range keys {
		m.keys[key] = i
	}
	return m
}

// forChecker is the model in the checker's form.
func (m *model) forChecker() porcupine.Model {
	powerSet := porcupine.NondeterministicModel{
		Init:  func() []any { return []any{&state{slots: make([]*value, m.slots)}} },
		Step:  func(s, input, _ any) []any { return m.step(s.(*state), input.(*operation)) },
		Equal: func(a, b any) bool { return a.(*state).equal(b.(*state)) },
		Hash:  func(s any) uint64 { return s.(*state).hash() },
		DescribeOperation: func(input, _ any) string {
			return input.(*operation).String()
		},
		DescribeState: func(s any) string { return m.describe(s.(*state)) },
	}
	return powerSet.ToModel()
}

// step is what the operation can lead to, if it takes effect next. Nothing where the reply that
// came back would be another.
func (m *model) step(s *state, o *operation) []any {
	cursors, inTurn := advance(s.cursors, o)
	if !inTurn {
		return nil
	}
	var results []any
	ways := choices{}
	for more := true; more; more = ways.next() {
		t := &tx{model: m, operation: o, choices: &ways, state: state{
			slots:   slices.Clone(s.slots),
			watches: slices.Clone(s.watches),
			cursors: cursors,
		}}
		// What has no answer may have been cut off before it took effect.
		if !o.answered && ways.of(2) == 1 {
			results = append(results, &t.state)
			continue
		}
		t.expire()
		if got := t.run(); !o.answered || got.equal(o.reply) {
			results = append(results, &t.state)
		}
	}
	return results
}

// Choices are a way through what is left open. The same code runs once for each way.
type choices struct {
	taken, widths []int
	at            int
}

// of is one of 0..width.
func (c *choices) of(width int) int {
	if c.at == len(c.taken) {
		c.taken, c.widths = append(c.taken, 0), append(c.widths, width)
	}
	c.at++
	return c.taken[c.at-1]
}

// next turns to another way, until there is none.
func (c *choices) next() bool {
	c.at = 0
	for last := len(c.taken) - 1; last >= 0; last-- {
		if c.taken[last]+1 < c.widths[last] {
			c.taken[last]++
			return true
		}
		c.taken, c.widths = c.taken[:last], c.widths[:last]
	}
	return false
}

// advance counts the operation in its batch, if all before it have taken effect.
func advance(cursors []cursor, o *operation) ([]cursor, bool) {
	if o.batch == 1 {
		return cursors, true
	}
	at := slices.IndexFunc(cursors, func(c cursor) bool { return c.client == o.client })
	next := 0
	if at >= 0 {
		next = cursors[at].next
	}
	if next != o.place {
		return nil, false
	}
	others := slices.Clone(cursors)
	if at >= 0 {
		others = slices.Delete(others, at, at+1)
	}
	if next+1 < o.batch {
		others = append(others, cursor{o.client, next + 1})
		slices.SortFunc(others, func(a, b cursor) int { return a.client - b.client })
	}
	return others, true
}

func (m *model) slot(db int, key string) int { return db*len(m.keys) + m.keys[key] }

func (s *state) equal(other *state) bool {
	same := func(a, b *value) bool { return a == b || a != nil && b != nil && a.equal(b) }
	return slices.EqualFunc(s.slots, other.slots, same) &&
		slices.Equal(s.watches, other.watches) && slices.Equal(s.cursors, other.cursors)
}

func (s *state) hash() uint64 {
	const prime = 0x100000001b3
	h := uint64(len(s.watches))
	for _, v := range s.slots {
		h *= prime
		if v != nil {
			h ^= v.hash
		}
	}
	for _, w := range s.watches {
		h = h*prime ^ uint64(w.client<<8) ^ uint64(w.slot<<1)
		if w.touched {
			h++
		}
	}
	for _, c := range s.cursors {
		h = h*prime ^ uint64(c.client<<8) ^ uint64(c.next)
	}
	return h
}

var hashSeed = maphash.MakeSeed()

func newValue(kind byte, items []string, gone window) *value {
	v := &value{kind: kind, items: items, gone: gone, hash: uint64(kind) + uint64(gone.from)}
	for _, item := range items {
		v.hash = v.hash*31 + maphash.String(hashSeed, item)
	}
	return v
}

func (v *value) equal(other *value) bool {
	return v.hash == other.hash && v.kind == other.kind && v.gone == other.gone &&
		slices.Equal(v.items, other.items)
}

// describe is the state as a report prints it.
func (m *model) describe(s *state) string {
	var parts []string
	for key, index := range m.keys {
		for db := range databases {
			v := s.slots[db*len(m.keys)+index]
			if v == nil {
				continue
			}
			part := key + "="
			if db != 0 {
				part = fmt.Sprintf("[db %d] %s=", db, key)
			}
			if v.kind == valueText {
				part += shown(v.items[0])
			} else {
				part += texts(v.items).String()
			}
			if v.gone != (window{}) {
				part += fmt.Sprintf(" (expires by %v)", time.Duration(v.gone.to))
			}
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	for _, w := range s.watches {
		if w.touched {
			parts = append(parts, fmt.Sprintf("c%d's watched key has changed", w.client))
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
