// Planted faults, with which the checker is checked.

package main

import (
	"math/rand"
	"slices"
	"strings"
	"sync"
)

// A fault stands between the connections and the server, and does something else than it was asked
// to. The checker has to find it.
type fault struct {
	name, about string
	// Does the operation in its own way, and returns what to say. Otherwise it goes to the server
	// as it is.
	stand func(f *fault, s *session, o *operation) (reply, bool, error)
	// The batches in which the order is changed.
	reverses bool
	// Scripts run in two halves, between which only other scripts run.
	halves bool
	mutex  sync.Mutex
	// Old replies.
	seen map[string]reply
	// By the name of a history: shared by its scripts, and held alone by whatever else it does.
	scripting map[string]*sync.RWMutex
}

var faults = []*fault{
	{name: "split-mset", about: "MSET sets one key after another", stand: splitMset},
	{name: "stale-read", about: "GET sometimes says what it said before", stand: staleRead},
	{name: "split-exec", about: "EXEC runs one command after another", stand: splitExec},
	{name: "deaf-watch", about: "WATCH watches nothing", stand: deafWatch},
	{name: "split-script", about: "a script runs one command after another", stand: splitScript},
	{name: "half-script", about: "a script sees half of another", halves: true},
	{name: "lost-write", about: "some SETs are confirmed and not done", stand: lostWrite},
	{name: "late-expiry", about: "keys live longer than they may", stand: lateExpiry},
	{name: "split-move", about: "an element that is moved is nowhere for a while",
		stand: splitMove},
	{name: "reversed-batch", about: "pipelined commands run in another order", reverses: true},
}

func faultNamed(name string) *fault {
	at := slices.IndexFunc(faults, func(f *fault) bool { return f.name == name })
	if at < 0 {
		return nil
	}
	f := faults[at]
	f.seen, f.scripting = map[string]reply{}, map[string]*sync.RWMutex{}
	return f
}

// perform plays the fault, if the batch gives it the opportunity. A connection that breaks leaves
// the outcome unknown, which explains everything, so none is cut while a fault is planted.
func (f *fault) perform(s *session, batch []*operation) bool {
	if f.reverses && len(batch) > 1 {
		slices.Reverse(batch)
		err := s.exchange(batch, 0)
		slices.Reverse(batch)
		return err == nil
	}
	if f.halves {
		return f.amongScripts(s, batch)
	}
	if f.stand == nil || len(batch) != 1 {
		return false
	}
	return batch[0].perform(func() (reply, bool, error) { return f.stand(f, s, batch[0]) })
}

// perform records what `do` makes of the operation, if it does it.
func (o *operation) perform(do func() (reply, bool, error)) bool {
	o.call = now()
	said, stood, err := do()
	if !stood || err != nil {
		return false
	}
	o.ret, o.reply, o.answered = now(), o.normal(said), true
	return true
}

// amongScripts runs a script in two halves while other scripts run at the same time, and everything
// else while no script runs: only another script sees half of a script.
func (f *fault) amongScripts(s *session, batch []*operation) bool {
	o := batch[0]
	lock := f.scriptingIn(o)
	if len(batch) > 1 || !o.isScript() {
		lock.Lock()
		defer lock.Unlock()
		return s.exchange(batch, 0) == nil
	}
	return o.perform(func() (reply, bool, error) {
		lock.RLock()
		defer lock.RUnlock()
		if o.form == single {
			said, err := s.ask(o.requests[0].wire()...)
			return said, true, err
		}
		said, err := o.askHalves(s)
		return said, true, err
	})
}

// scriptingIn is the lock of the history to which the operation belongs. An operation without a
// key belongs to a history that has the server to itself.
func (f *fault) scriptingIn(o *operation) *sync.RWMutex {
	name := ""
	for _, r := range o.requests {
		for _, key := range commands[r[0]].keysOf(r) {
			name, _, _ = strings.Cut(key, ":")
		}
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.scripting[name] == nil {
		f.scripting[name] = new(sync.RWMutex)
	}
	return f.scripting[name]
}

func (o *operation) isScript() bool {
	return o.form == script || o.form == single && template{words: o.requests[0]}.isScript()
}

// askHalves calls the first half of the script's requests, and then the others.
func (o *operation) askHalves(s *session) (reply, error) {
	var replies []reply
	at := len(o.requests) / 2
	for _, half := range [][]request{o.requests[:at], o.requests[at:]} {
		part := *o
		part.requests = half
		said, err := s.ask(part.scriptCall()...)
		if err != nil || said.kind != kindArray {
			return said, err
		}
		replies = append(replies, said.items...)
	}
	return array(replies), nil
}

func splitMset(_ *fault, s *session, o *operation) (reply, bool, error) {
	r := o.requests[0]
	if o.form != single || r[0] != "MSET" {
		return reply{}, false, nil
	}
	for at := 1; at+1 < len(r); at += 2 {
		if said, err := s.ask("SET", r[at], r[at+1]); err != nil {
			return said, true, err
		}
	}
	return replyOK, true, nil
}

func staleRead(f *fault, s *session, o *operation) (reply, bool, error) {
	r := o.requests[0]
	if o.form != single || r[0] != "GET" {
		return reply{}, false, nil
	}
	f.mutex.Lock()
	old, known := f.seen[r[1]]
	f.mutex.Unlock()
	if known && rand.Intn(10) == 0 {
		return old, true, nil
	}
	said, err := s.ask(r...)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if rand.Intn(10) == 0 {
		f.seen[r[1]] = said
	}
	return said, true, err
}

func (s *session) oneByOne(requests []request) (reply, bool, error) {
	replies := make([]reply, len(requests))
	for i, r := range requests {
		said, err := s.ask(r.wire()...)
		if err != nil {
			return said, true, err
		}
		replies[i] = said
	}
	return array(replies), true, nil
}

func splitExec(_ *fault, s *session, o *operation) (reply, bool, error) {
	waits := func(r request) bool { return template{words: r}.waits() }
	if o.form != transaction || slices.ContainsFunc(o.requests, waits) {
		return reply{}, false, nil
	}
	// Watched keys are still honoured: their fault is another.
	s.out = appendRequest(appendRequest(s.out[:0], []string{"MULTI"}), []string{"EXEC"})
	if err := s.send(); err != nil {
		return reply{}, true, err
	}
	if said, err := s.receive(); err != nil {
		return said, true, err
	}
	if said, err := s.receive(); err != nil || said.kind == kindNull {
		return said, true, err
	}
	return s.oneByOne(o.requests)
}

func splitScript(_ *fault, s *session, o *operation) (reply, bool, error) {
	if o.form != script {
		return reply{}, false, nil
	}
	return s.oneByOne(o.requests)
}

func deafWatch(_ *fault, _ *session, o *operation) (reply, bool, error) {
	return replyOK, o.requests[0][0] == "WATCH", nil
}

func lostWrite(_ *fault, _ *session, o *operation) (reply, bool, error) {
	r := o.requests[0]
	lost := o.form == single && r[0] == "SET" && len(r) == 3 && rand.Intn(20) == 0
	return replyOK, lost, nil
}

func lateExpiry(_ *fault, s *session, o *operation) (reply, bool, error) {
	r := slices.Clone(o.requests[0])
	at := slices.Index(r, "PX") + 1
	if r[0] == "PEXPIRE" {
		at = 2
	}
	if o.form != single || at == 0 {
		return reply{}, false, nil
	}
	r[at] += "0"
	said, err := s.ask(r...)
	return said, true, err
}

func splitMove(_ *fault, s *session, o *operation) (reply, bool, error) {
	r := o.requests[0]
	if o.form != single || r[0] != "RPOPLPUSH" && r[0] != "LMOVE" {
		return reply{}, false, nil
	}
	take, give := "RPOP", "LPUSH"
	if r[0] == "LMOVE" && r[3] == "LEFT" {
		take = "LPOP"
	}
	if r[0] == "LMOVE" && r[4] == "RIGHT" {
		give = "RPUSH"
	}
	said, err := s.ask(take, r[1])
	if err == nil && said.kind == kindText {
		_, err = s.ask(give, r[2], said.text)
	}
	return said, true, err
}
