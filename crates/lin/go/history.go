// Operations, and what is known of them.

package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A request is a command with its arguments.
type request []string

// The forms in which requests take effect.
type form byte

const (
	// One command.
	single form = iota
	// MULTI, the requests, EXEC.
	transaction
	// A script that calls the requests and returns their replies.
	script
)

// never is the time of a response that did not come.
const never = math.MaxInt64

// An operation is what takes effect at one moment between its call and its return.
type operation struct {
	form     form
	requests []request
	// The database that the connection has selected.
	db int
	// The connection, a new number for each.
	client int
	// The place within the requests that were sent together, and how many these are. They take
	// effect in this order.
	place, batch int
	// How a script is called, and whether it does not name its keys.
	caller     string
	undeclared bool
	// Nanoseconds on the clock of this process.
	call, ret int64
	// What came back. Without `answered` it is unknown whether the operation took effect.
	reply    reply
	answered bool
}

// A history is what a group of connections did to keys of their own.
type history struct {
	profile    *profile
	keys       []string
	operations []*operation
	// What led to it, for the report.
	origin string
}

func (o *operation) String() string {
	words := make([]string, len(o.requests))
	for i, request := range o.requests {
		parts := make([]string, len(request))
		for j, word := range request {
			parts[j] = shown(word)
		}
		words[i] = strings.Join(parts, " ")
	}
	said := "?"
	if o.answered {
		said = o.reply.String()
	}
	what := strings.Join(words, "; ")
	switch o.form {
	case transaction:
		what = "MULTI; " + what + "; EXEC"
	case script:
		what = o.caller + " {" + what + "}"
	}
	if o.db != 0 {
		what = fmt.Sprintf("[db %d] %s", o.db, what)
	}
	return what + " -> " + said
}

// isRead says whether the operation changes nothing, whenever it takes effect.
func (o *operation) isRead() bool {
	for _, request := range o.requests {
		if row := commands[request[0]]; !row.reads {
			return false
		}
	}
	// EXEC ends the watch of keys, and operations of one batch count each other.
	return o.form == single && o.batch == 1
}

// until is the operation as it was known at `time`.
func (o *operation) until(time int64) *operation {
	if o.ret <= time {
		return o
	}
	cut := *o
	cut.ret, cut.answered, cut.reply = never, false, reply{}
	return &cut
}

// forChecker is the history in the checker's form, with clients numbered from 0.
func forChecker(operations []*operation) []porcupine.Operation {
	clients := map[int]int{}
	list := make([]porcupine.Operation, len(operations))
	for i, o := range operations {
		id, known := clients[o.client]
		if !known {
			id = len(clients)
			clients[o.client] = id
		}
		list[i] = porcupine.Operation{ClientId: id, Input: o, Call: o.call, Return: o.ret}
	}
	return list
}
