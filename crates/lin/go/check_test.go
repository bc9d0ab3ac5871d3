// Small histories with the verdicts that they must get.

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

const ms = int64(time.Millisecond)

// did is an operation with the times of its call and return, in milliseconds. Requests stand
// between semicolons; more than one are a transaction.
func did(client int, call, ret int64, requests string, said reply) *operation {
	o := &operation{client: client, call: call * ms, ret: ret * ms, batch: 1, answered: true}
	for _, words := range strings.Split(requests, ";") {
		o.requests = append(o.requests, strings.Fields(words))
	}
	if len(o.requests) > 1 {
		o.form = transaction
	}
	o.reply = said
	return o
}

// lost is an operation with an unknown outcome.
func lost(client int, call, ret int64, requests string) *operation {
	o := did(client, call, ret, requests, reply{})
	o.answered = false
	return o
}

// batched makes operations one pipeline.
func batched(operations ...*operation) []*operation {
	for i, o := range operations {
		o.place, o.batch = i, len(operations)
	}
	return operations
}

func inDatabase(db int, o *operation) *operation {
	o.db = db
	return o
}

func TestVerdicts(t *testing.T) {
	null, one, two := replyNull, integer(1), integer(2)
	list := func(items ...reply) reply { return array(items) }
	cases := []struct {
		name       string
		legal      bool
		operations []*operation
	}{
		{"a read of what is written meanwhile sees either", true, []*operation{
			did(1, 0, 9, "SET a 1", replyOK),
			did(2, 1, 2, "GET a", null),
			did(2, 3, 4, "GET a", text("1")),
		}},
		{"what was seen stays", false, []*operation{
			did(1, 0, 9, "SET a 1", replyOK),
			did(2, 1, 2, "GET a", text("1")),
			did(3, 3, 4, "GET a", null),
		}},
		{"a confirmed write is seen", false, []*operation{
			did(1, 0, 1, "SET a 1", replyOK),
			did(2, 2, 3, "GET a", null),
		}},
		{"half an MSET", false, []*operation{
			did(1, 0, 9, "MSET a 1 b 1", replyOK),
			did(2, 1, 2, "MGET a b", list(text("1"), null)),
		}},
		{"half a transaction", false, []*operation{
			did(1, 0, 9, "INCR a; INCR b", list(one, one)),
			did(2, 1, 2, "MGET a b", list(null, text("1"))),
		}},
		{"two counts of one", false, []*operation{
			did(1, 0, 9, "INCR a", one),
			did(2, 0, 9, "INCR a", one),
		}},
		{"a transaction after a change of a watched key", false, []*operation{
			did(1, 0, 1, "WATCH a", replyOK),
			did(2, 2, 3, "SET a 1", replyOK),
			did(1, 4, 5, "SET a 2; GET a", list(replyOK, text("2"))),
		}},
		{"the same value again is a change", false, []*operation{
			did(2, 0, 1, "SET a 1", replyOK),
			did(1, 2, 3, "WATCH a", replyOK),
			did(2, 4, 5, "SET a 1", replyOK),
			did(1, 6, 7, "SET a 2; GET a", list(replyOK, text("2"))),
		}},
		{"an abort without a change", false, []*operation{
			did(2, 0, 1, "SET a 1", replyOK),
			did(1, 2, 3, "WATCH a", replyOK),
			did(2, 4, 5, "SET b 1", replyOK),
			did(1, 6, 7, "SET a 2; GET a", null),
		}},
		{"an abort that a write explains", true, []*operation{
			did(1, 0, 1, "WATCH a", replyOK),
			did(2, 0, 9, "SET a 1", replyOK),
			did(1, 2, 3, "SET a 2; GET a", null),
		}},
		{"one element for two", false, []*operation{
			did(1, 0, 1, "LPUSH a 1", one),
			did(1, 2, 9, "RPOP a", text("1")),
			did(2, 2, 9, "BLPOP a 1", texts([]string{"a", "1"})),
		}},
		{"a wait that ends while there is an element", false, []*operation{
			did(1, 0, 1, "LPUSH a 1", one),
			did(2, 2, 9, "BLPOP a 1", null),
		}},
		{"a wait that ends before there is one", true, []*operation{
			did(2, 0, 9, "BLPOP a 1", null),
			did(1, 8, 10, "LPUSH a 1", one),
		}},
		{"a moved member that is nowhere", false, []*operation{
			did(1, 0, 1, "SADD a x", one),
			did(1, 2, 9, "SMOVE a b x", one),
			did(2, 3, 8, "SCARD a; SCARD b", list(integer(0), integer(0))),
		}},
		{"an unknown outcome may have been", true, []*operation{
			lost(1, 0, 1, "SET a 1"),
			did(2, 2, 3, "GET a", text("1")),
		}},
		{"or not", true, []*operation{
			lost(1, 0, 1, "SET a 1"),
			did(2, 2, 3, "GET a", null),
		}},
		{"but not later, when its connection is gone", false, []*operation{
			lost(1, 0, 1, "SET a 1"),
			did(2, 2, 3, "GET a", null),
			did(2, 4, 5, "GET a", text("1")),
		}},
		{"a pipeline has an order", false, batched(
			did(1, 0, 9, "SET a 1", replyOK),
			did(1, 0, 9, "GET a", null),
		)},
		{"a key that expires is there", false, []*operation{
			did(1, 0, 1, "SET a 1 PX 500", replyOK),
			did(2, 300, 301, "GET a", null),
		}},
		{"and then it is not", false, []*operation{
			did(1, 0, 1, "SET a 1 PX 500", replyOK),
			did(2, 700, 701, "GET a", text("1")),
		}},
		{"in between it is as it likes", true, []*operation{
			did(1, 0, 1, "SET a 1 PX 500", replyOK),
			did(2, 500, 501, "GET a", text("1")),
			did(2, 502, 503, "GET a", null),
		}},
		{"but does not come back", false, []*operation{
			did(1, 0, 1, "SET a 1 PX 500", replyOK),
			did(2, 500, 501, "GET a", null),
			did(2, 502, 503, "GET a", text("1")),
		}},
		{"a watched key that expires is a change", false, []*operation{
			did(1, 0, 1, "SET a 1 PX 500", replyOK),
			did(2, 2, 3, "WATCH a", replyOK),
			did(2, 700, 701, "INCR b; INCR b", list(one, two)),
		}},
		{"databases that are exchanged", true, []*operation{
			did(1, 0, 1, "SET a 1", replyOK),
			did(1, 2, 3, "SWAPDB 0 1", replyOK),
			did(1, 4, 5, "GET a", null),
			inDatabase(1, did(1, 6, 7, "GET a", text("1"))),
		}},
		{"half a FLUSHALL", false, []*operation{
			did(1, 0, 1, "MSET a 1 b 1", replyOK),
			did(1, 2, 9, "FLUSHALL", replyOK),
			did(2, 3, 8, "MGET a b", list(null, text("1"))),
		}},
	}
	for _, c := range cases {
		h := &history{keys: []string{"a", "b"}, operations: c.operations, profile: profiles[0]}
		want := porcupine.Illegal
		if c.legal {
			want = porcupine.Ok
		}
		if got := h.check(h.operations, time.Minute); got != want {
			t.Errorf("%s: %v, not %v", c.name, got, want)
		}
	}
}

func TestAViolationIsMadeShort(t *testing.T) {
	h := &history{keys: []string{"a", "b"}, profile: profiles[0], operations: []*operation{
		did(1, 0, 1, "SET a 1", replyOK),
		did(1, 2, 3, "GET a", text("1")),
		did(1, 4, 5, "GET b", replyNull),
		did(2, 6, 7, "GET a", replyNull),
		did(2, 8, 9, "SET a 2", replyOK),
		did(1, 8, 9, "GET a", text("2")),
	}}
	short := h.reduce()
	if len(short) != 2 || short[0] != h.operations[0] || short[1] != h.operations[3] {
		t.Errorf("%v", short)
	}
	report := h.report(t.TempDir())
	for _, part := range []string{"SET a 1 -> OK", "GET a -> nil", "a=1", "violation.html"} {
		if !strings.Contains(report, part) {
			t.Errorf("%q is not in\n%s", part, report)
		}
	}
}

func TestProfilesUseTheModel(t *testing.T) {
	used := map[string]bool{"WATCH": true, "UNWATCH": true}
	for _, p := range profiles {
		for _, template := range p.mix {
			used[template.words[0]] = true
		}
	}
	for name := range commands {
		if !used[name] {
			t.Errorf("no profile sends %s", name)
		}
	}
}
