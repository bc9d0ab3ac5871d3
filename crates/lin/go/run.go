// Connections, their groups, and the histories that they make.

package main

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Settings of a run.
type settings struct {
	address string
	seed    int64
	// The run ends after either.
	operations int64
	time       time.Duration
	// The fewest and the most connections at a time.
	connections [2]int
	fault       *fault
	// The profiles that are used; all where it is empty.
	profiles []*profile
	// Where a violation is written to.
	folder string
}

const (
	// Connections that make histories together.
	groupMin, groupMax = 2, 8
	// Steps of each connection in one history.
	stepsMin, stepsMax = 10, 40
	// Histories of a group before the connections form new groups.
	historiesMax = 6
	// Connections that are cut in one history. Each leaves operations of unknown outcome.
	cutsMax = 3
	// One history in so many has cuts.
	cutEvery = 3
	// How long after its request a connection is cut by this side.
	cutTimeMax = 300 * time.Microsecond
	// Between two lines about the progress.
	tellEvery = 30 * time.Second
)

// A run drives the server and gives histories to the checkers.
type run struct {
	settings
	callers  []string
	stats    *stats
	checkers *checkers
	// The open connections, for the goroutine that cuts them.
	open      sync.Map
	histories atomic.Int64
	failed    chan error
}

// drive runs phases until there is enough, or something is wrong.
func drive(set settings) (*stats, error) {
	r := &run{settings: set, stats: newStats(), failed: make(chan error, 1)}
	admin, err := openSession(set.address, nil)
	if err != nil {
		return nil, err
	}
	defer admin.close()
	if r.callers, err = callers(admin); err != nil {
		return nil, err
	}
	r.checkers = startCheckers(r)
	stop := r.startDisturbing()
	err = r.phases(admin)
	stop()
	if found := r.checkers.finish(); found != nil {
		return r.stats, found
	}
	return r.stats, err
}

func (r *run) phases(admin *session) error {
	random := rand.New(rand.NewSource(r.seed))
	end, told := now()+int64(r.time), now()
	for number := int64(1); r.stats.operations.Load() < r.operations && now() < end; number++ {
		err := r.phase(random, number)
		if err == nil {
			err = admin.mustSay(replyOK, "FLUSHALL")
		}
		if err != nil {
			return err
		}
		if now()-told > int64(tellEvery) {
			told = now()
			fmt.Fprintf(os.Stderr, "lin: %d operations in %d histories\n",
				r.stats.operations.Load(), r.stats.histories.Load())
		}
		select {
		case err := <-r.failed:
			return err
		case <-r.checkers.found:
			return nil
		default:
		}
	}
	return nil
}

// phase groups the connections, and lets the groups make histories at the same time. One phase in
// four concerns all keys of the server, and has one group.
func (r *run) phase(random *rand.Rand, number int64) error {
	var usable [2][]*profile
	for _, p := range r.profiles {
		which := 0
		if p.whole {
			which = 1
		}
		usable[which] = append(usable[which], p)
	}
	whole := len(usable[1]) > 0 && (number%4 == 0 || len(usable[0]) == 0)
	if whole {
		size := groupMin + random.Intn(groupMax-groupMin+1)
		return r.group(random.Int63(), size, usable[1])
	}
	var groups []func() error
	most := r.connections[1] - r.connections[0] + 1
	for left := r.connections[0] + random.Intn(most); left > 0; {
		size := min(left, groupMin+random.Intn(groupMax-groupMin+1))
		left -= size
		seed := random.Int63()
		groups = append(groups, func() error { return r.group(seed, size, usable[0]) })
	}
	return together(groups)
}

// together runs all at once and returns the first error.
func together(parts []func() error) error {
	errs := make(chan error, len(parts))
	for _, part := range parts {
		go func() { errs <- part() }()
	}
	var first error
	for range parts {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}

// group opens connections and makes histories with them.
func (r *run) group(seed int64, size int, usable []*profile) error {
	random := rand.New(rand.NewSource(seed))
	members := make([]*session, size)
	for i := range members {
		var err error
		if members[i], err = r.openMember(); err != nil {
			return err
		}
	}
	defer func() {
		for _, member := range members {
			r.closeMember(member)
		}
	}()
	for range 1 + random.Intn(historiesMax) {
		p := usable[random.Intn(len(usable))]
		h, err := r.history(random, members, p, seed)
		if err != nil {
			return err
		}
		r.stats.count(h)
		if !r.checkers.take(h) {
			break
		}
	}
	return nil
}

func (r *run) openMember() (*session, error) {
	member, err := openSession(r.address, r.fault)
	if err == nil {
		r.open.Store(member, true)
	}
	return member, err
}

func (r *run) closeMember(member *session) {
	r.open.Delete(member)
	member.close()
}

// history lets every member send its operations to the keys of the history.
func (r *run) history(
	random *rand.Rand, members []*session, p *profile, seed int64,
) (*history, error) {
	number := r.histories.Add(1)
	members = members[:min(len(members), p.connectionsMax)]
	h := &history{profile: p}
	var byType map[string][]string
	h.keys, byType = p.keyNames(strconv.FormatInt(number, 36))
	steps := stepsMin + random.Intn(stepsMax-stepsMin+1)
	h.origin = fmt.Sprintf("history %d, profile %s, %d connections, group seed %d",
		number, p.name, len(members), seed)
	cuts := new(atomic.Int32)
	if random.Intn(cutEvery) == 0 && r.fault == nil {
		cuts.Store(cutsMax)
	}
	values := new(atomic.Int64)
	done := make([][]*operation, len(members))
	parts := make([]func() error, len(members))
	for i := range members {
		own := rand.New(rand.NewSource(random.Int63()))
		w := &worker{
			run: r, cuts: cuts, steps: steps, db: 0,
			generator: &generator{
				profile: p, keys: byType, random: own, callers: r.callers, values: values,
			},
		}
		if p.whole {
			w.db = own.Intn(databases)
		}
		parts[i] = func() error {
			var err error
			members[i], err = w.work(members[i])
			done[i] = w.done
			return err
		}
	}
	err := together(parts)
	for _, part := range done {
		h.operations = append(h.operations, part...)
	}
	return h, err
}

// A worker uses a connection for one history.
type worker struct {
	*generator
	run   *run
	cuts  *atomic.Int32
	steps int
	db    int
	done  []*operation
}

// work returns the connection, which is another one after a cut.
func (w *worker) work(s *session) (*session, error) {
	s.cuts.Store(w.cuts)
	s, err := w.ready(s)
	for step := 0; step < w.steps && err == nil; step++ {
		for _, batch := range w.draw(w.db) {
			cut := time.Duration(0)
			if w.random.Intn(w.steps) == 0 && w.cuts.Add(-1) >= 0 {
				cut = time.Duration(1 + w.random.Intn(int(cutTimeMax)))
			}
			err = s.perform(batch, cut)
			w.done = append(w.done, batch...)
			if err == nil {
				continue
			}
			if errors.Is(err, errCut) {
				if s, err = w.replace(s); err == nil {
					settle(batch)
				}
			}
			break
		}
	}
	return s, err
}

// ready selects the database of the history.
func (w *worker) ready(s *session) (*session, error) {
	err := s.mustSay(replyOK, "SELECT", strconv.Itoa(w.db))
	if errors.Is(err, errCut) {
		return w.replace(s)
	}
	return s, err
}

// replace opens a connection in place of one that was cut, and waits until the server has closed
// that one: what it sent has taken effect by then, or never will.
func (w *worker) replace(old *session) (*session, error) {
	w.run.closeMember(old)
	s, err := w.run.openMember()
	for end := time.Now().Add(answerTimeMax); err == nil; {
		var said reply
		said, err = s.ask("CLIENT", "LIST", "ID", old.id)
		if err == nil && said.text == "" {
			break
		}
		if err == nil && time.Now().After(end) {
			err = fmt.Errorf("a closed connection is still there: %v", said)
		}
	}
	if err != nil {
		return s, err
	}
	s.cuts.Store(w.cuts)
	return w.ready(s)
}

// settle says of what has no reply that it is over.
func settle(batch []*operation) {
	over := now()
	for _, o := range batch {
		if !o.answered {
			o.ret = over
		}
	}
}
