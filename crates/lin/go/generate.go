// Random operations.

package main

import (
	"math/rand"
	"strconv"
	"strings"
	"sync/atomic"
)

// A generator draws the operations of one connection for one history.
type generator struct {
	profile *profile
	keys    map[string][]string
	random  *rand.Rand
	// How the server lets scripts be called; nothing where it knows none.
	callers []string
	// Numbers the new values of the whole history.
	values *atomic.Int64
}

// How many of a hundred draws are what; the others are single commands.
const (
	pipelineShare    = 12
	transactionShare = 18
	watchShare       = 10
	scriptShare      = 12
)

// draw is what is sent next: operations that go together, one batch after the other's replies.
func (g *generator) draw(db int) [][]*operation {
	single := func() *operation {
		return &operation{requests: []request{g.request(allowAll)}, db: db, batch: 1}
	}
	at := g.random.Intn(100)
	take := func(share int) bool {
		at -= share
		return at < 0
	}
	switch {
	case take(pipelineShare):
		batch := make([]*operation, 2+g.random.Intn(3))
		for i := range batch {
			batch[i] = single()
			if g.random.Intn(6) == 0 {
				batch[i] = g.several(transaction, db)
			}
			batch[i].place, batch[i].batch = i, len(batch)
		}
		return [][]*operation{batch}
	case take(transactionShare):
		return [][]*operation{{g.several(transaction, db)}}
	case take(watchShare):
		return g.watched(db)
	case take(scriptShare) && len(g.callers) > 0:
		return [][]*operation{{g.several(script, db)}}
	}
	return [][]*operation{{single()}}
}

// watched is WATCH, a read, and a transaction; sometimes it is given up, and sometimes the client
// changes a key itself.
func (g *generator) watched(db int) [][]*operation {
	word := func(words ...string) []*operation {
		return []*operation{{requests: []request{words}, db: db, batch: 1}}
	}
	read := g.request(func(t template) bool { return t.reads() })
	watch := append(request{"WATCH"}, commands[read[0]].keysOf(read)...)
	if g.random.Intn(3) == 0 {
		other := g.request(func(t template) bool { return t.reads() })
		watch = append(watch, commands[other[0]].keysOf(other)...)
	}
	steps := [][]*operation{word(watch...), {{requests: []request{read}, db: db, batch: 1}}}
	switch g.random.Intn(12) {
	case 0:
		return append(steps, word("UNWATCH"))
	case 1:
		steps = append(steps, word(g.request(func(t template) bool { return !t.waits() })...))
	}
	return append(steps, []*operation{g.several(transaction, db)})
}

func (g *generator) several(form form, db int) *operation {
	o := &operation{form: form, db: db, batch: 1}
	allow := allowAll
	if form == script {
		allow = func(t template) bool { return !t.waits() && !t.isScript() }
	}
	for range 2 + g.random.Intn(3) {
		o.requests = append(o.requests, g.request(allow))
	}
	if form == script {
		o.caller = g.callers[g.random.Intn(len(g.callers))]
		o.undeclared = g.random.Intn(8) == 0
	}
	return o
}

func allowAll(template) bool { return true }

// request draws a template among the allowed ones, and fills it.
func (g *generator) request(allow func(template) bool) request {
	fits := func(t template) bool { return allow(t) && (len(g.callers) > 0 || !t.isScript()) }
	total := 0
	for _, t := range g.profile.mix {
		if fits(t) {
			total += t.weight
		}
	}
	at := g.random.Intn(total)
	for _, t := range g.profile.mix {
		if !fits(t) {
			continue
		}
		if at -= t.weight; at < 0 {
			return g.fill(t)
		}
	}
	panic("the weights add up")
}

func (g *generator) fill(t template) request {
	words := make(request, len(t.words))
	for i, word := range t.words {
		words[i] = word
		if strings.HasPrefix(word, "<") {
			words[i] = g.word(strings.Trim(word, "<>"))
		}
	}
	return words
}

func (g *generator) word(placeholder string) string {
	switch placeholder {
	case "value":
		value := "v" + strconv.FormatInt(g.values.Add(1), 36)
		return value + strings.Repeat(".", g.profile.padding*(1+g.random.Intn(2)))
	case "n":
		return strconv.Itoa(g.random.Intn(9) + 1)
	case "offset":
		return strconv.Itoa(g.random.Intn(8))
	case "field":
		return string(rune('a' + g.random.Intn(3)))
	case "ttl":
		return strconv.Itoa(1 + g.random.Intn(80))
	case "wait":
		return strconv.FormatFloat(0.001+g.random.Float64()*0.03, 'f', 4, 64)
	}
	keys := g.keys[placeholder]
	return keys[g.random.Intn(len(keys))]
}
