// Decides with Porcupine whether histories are linearizable, and reports one that is not.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	// How long the checker may search in one history. To decide is NP-complete.
	checkTimeMax = 20 * time.Second
	// How long a violation may take to be made shorter.
	reduceTimeMax = 20 * time.Second
	// Histories that wait for a checker, after which the connections wait.
	queueMax = 16
)

// A violation is a history that no order of its operations explains.
type violation struct{ report string }

func (v *violation) Error() string { return v.report }

// checkers decide about histories while others are made.
type checkers struct {
	run     *run
	queue   chan *history
	workers sync.WaitGroup
	// Closed with the first violation.
	found chan struct{}
	once  sync.Once
	first *violation
}

func startCheckers(r *run) *checkers {
	c := &checkers{run: r, queue: make(chan *history, queueMax), found: make(chan struct{})}
	for range runtime.GOMAXPROCS(0) {
		c.workers.Add(1)
		go c.work()
	}
	return c
}

// take hands a history over, and says whether more are wanted.
func (c *checkers) take(h *history) bool {
	select {
	case <-c.found:
		return false
	case c.queue <- h:
		return true
	}
}

// finish waits for the checkers and returns the first violation.
func (c *checkers) finish() error {
	close(c.queue)
	c.workers.Wait()
	if c.first == nil {
		return nil
	}
	return c.first
}

func (c *checkers) work() {
	defer c.workers.Done()
	for h := range c.queue {
		switch h.check(h.operations, checkTimeMax) {
		case porcupine.Unknown:
			c.run.stats.undecided.Add(1)
			fmt.Fprintf(os.Stderr, "lin: undecided: %s\n", h.origin)
		case porcupine.Illegal:
			c.once.Do(func() {
				close(c.found)
				c.first = &violation{h.report(c.run.folder)}
			})
			return
		}
	}
}

func (h *history) check(operations []*operation, time time.Duration) porcupine.CheckResult {
	m := newModel(h.keys)
	return porcupine.CheckOperationsTimeout(m.forChecker(), forChecker(operations), time)
}

// reduce is a shorter history that is a violation too. What had not returned by a moment may be
// left open, and a read may be left out: neither makes a violation of a history that was none.
func (h *history) reduce() []*operation {
	illegal := func(operations []*operation) bool {
		return h.check(operations, checkTimeMax) == porcupine.Illegal
	}
	returns := []int64{}
	for _, o := range h.operations {
		if o.ret != never {
			returns = append(returns, o.ret)
		}
	}
	slices.Sort(returns)
	low, high := 0, len(returns)-1
	for low < high {
		middle := (low + high) / 2
		if illegal(h.until(returns[middle])) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	operations := h.until(returns[high])
	if !illegal(operations) {
		// The search ran out of time.
		return h.operations
	}
	end := time.Now().Add(reduceTimeMax)
	for at := len(operations) - 1; at >= 0 && time.Now().Before(end); at-- {
		if operations[at].isRead() {
			without := slices.Delete(slices.Clone(operations), at, at+1)
			if illegal(without) {
				operations = without
			}
		}
	}
	return operations
}

// until is what was known of the history at a moment.
func (h *history) until(moment int64) []*operation {
	var known []*operation
	for _, o := range h.operations {
		if o.call <= moment {
			known = append(known, o.until(moment))
		}
	}
	return known
}

// report describes a violation, and writes a picture of it into the folder.
func (h *history) report(folder string) string {
	operations := h.reduce()
	slices.SortFunc(operations, func(a, b *operation) int { return int(a.call - b.call) })
	m := newModel(h.keys)
	model := m.forChecker()
	list := forChecker(operations)
	_, info := porcupine.CheckOperationsVerbose(model, list, checkTimeMax)
	var longest []porcupine.Operation
	for _, partial := range info.PartialLinearizationsOperations()[0] {
		if len(partial) > len(longest) {
			longest = partial
		}
	}
	state, order := model.Init(), map[*operation]int{}
	for i, step := range longest {
		_, state = model.Step(state, step.Input, nil)
		order[step.Input.(*operation)] = i + 1
	}
	var out strings.Builder
	fmt.Fprintf(&out, "not linearizable: %s\n", h.origin)
	fmt.Fprintf(&out, "%d of %d operations; place in the longest order that explains some of them, "+
		"call and return in microseconds, connection:\n", len(operations), len(h.operations))
	start := operations[0].call
	for _, o := range operations {
		place, ret := "-", "?"
		if at := order[o]; at > 0 {
			place = fmt.Sprint(at)
		}
		if o.ret != never {
			ret = fmt.Sprintf("%.1f", float64(o.ret-start)/1000)
		}
		call := float64(o.call-start) / 1000
		fmt.Fprintf(&out, "%4s %10.1f %10s  c%d %v\n", place, call, ret, o.client, o)
	}
	fmt.Fprintf(&out, "after the longest order the keys are: %s\n", model.DescribeState(state))
	if folder != "" {
		path := filepath.Join(folder, "violation.html")
		if file, err := os.Create(path); err == nil {
			defer file.Close()
			if porcupine.Visualize(model, info, file) == nil {
				fmt.Fprintf(&out, "picture: %s\n", path)
			}
		}
	}
	return out.String()
}
