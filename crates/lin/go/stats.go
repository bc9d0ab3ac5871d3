// What a run came to, in numbers.

package main

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

// stats are what a run came to. A test looks at them, so that a run that tried nothing is none
// that found nothing.
type stats struct {
	operations, histories, undecided                 atomic.Int64
	transactions, scripts, batches, aborted, unknown atomic.Int64
	waited, vanished                                 atomic.Int64
	mutex                                            sync.Mutex
	// How often each parameter was changed, and each command was sent.
	changes, commands map[string]int64
}

func newStats() *stats {
	return &stats{changes: map[string]int64{}, commands: map[string]int64{}}
}

// count adds a history.
func (s *stats) count(h *history) {
	s.histories.Add(1)
	s.operations.Add(int64(len(h.operations)))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, o := range h.operations {
		for _, request := range o.requests {
			s.commands[request[0]]++
		}
		switch o.form {
		case transaction:
			s.transactions.Add(1)
		case script:
			s.scripts.Add(1)
		}
		if o.batch > 1 {
			s.batches.Add(1)
		}
		null := o.answered && o.reply.kind == kindNull
		switch {
		case !o.answered:
			s.unknown.Add(1)
		case null && o.form == transaction:
			s.aborted.Add(1)
		case null && (template{words: o.requests[0]}).waits():
			s.waited.Add(1)
		case null && h.profile.name == "expiry" && o.requests[0][0] == "GET":
			s.vanished.Add(1)
		}
	}
}

// print writes a line for each number.
func (s *stats) print(to io.Writer) {
	for _, line := range []struct {
		name  string
		count *atomic.Int64
	}{
		{"operations", &s.operations},
		{"histories", &s.histories},
		{"histories the checker could not decide in time", &s.undecided},
		{"transactions", &s.transactions},
		{"transactions that a watched key aborted", &s.aborted},
		{"scripts", &s.scripts},
		{"operations in a pipeline", &s.batches},
		{"operations of unknown outcome", &s.unknown},
		{"waits that ended without an element", &s.waited},
		{"reads of a key that was not there, among expiring keys", &s.vanished},
	} {
		fmt.Fprintf(to, "%10d %s\n", line.count.Load(), line.name)
	}
	for _, counts := range []map[string]int64{s.changes, s.commands} {
		names := make([]string, 0, len(counts))
		for name := range counts {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(to, "%10d %s\n", counts[name], name)
		}
	}
}

// changed counts a change of a parameter.
func (s *stats) changed(parameter string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.changes["changes of "+parameter]++
}
