// Disturbances of the server while histories are made.

package main

import (
	"math/rand"
	"time"
)

// disturbances are what changes in the server meanwhile: values of a parameter, and one in how many
// times it is set. A value that stands more often is set more often.
var disturbances = []struct {
	parameter string
	values    []string
	every     int
}{
	{"io-threads", []string{"1", "2", "3", "4"}, 1},
	{"io-threads-execute", []string{"all", "all", "all", "simple", "none"}, 4},
	{"script-parallel", []string{"yes", "yes", "no"}, 4},
}

// startDisturbing changes parameters, and has the server close connections, until stop is
// called.
func (r *run) startDisturbing() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	random := rand.New(rand.NewSource(r.seed + 1))
	go func() {
		defer close(ended)
		if err := r.disturb(random, end); err != nil {
			select {
			case r.failed <- err:
			default:
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

func (r *run) disturb(random *rand.Rand, end chan struct{}) error {
	admin, err := openSession(r.address, nil)
	if err != nil {
		return err
	}
	defer admin.close()
	for {
		select {
		case <-end:
			return nil
		case <-time.After(time.Duration(2+random.Intn(40)) * time.Millisecond):
		}
		if err := r.kill(random, admin); err != nil {
			return err
		}
		for _, d := range disturbances {
			if random.Intn(d.every) != 0 {
				continue
			}
			value := d.values[random.Intn(len(d.values))]
			said, err := admin.ask("CONFIG", "SET", d.parameter, value)
			if err != nil {
				return err
			}
			// Other servers refuse them.
			if said.equal(replyOK) {
				r.stats.changed(d.parameter)
			}
		}
	}
}

// kill has the server close the connection of a history that takes cuts.
func (r *run) kill(random *rand.Rand, admin *session) error {
	var members []*session
	r.open.Range(func(member, _ any) bool {
		members = append(members, member.(*session))
		return true
	})
	if len(members) == 0 {
		return nil
	}
	member := members[random.Intn(len(members))]
	cuts := member.cuts.Load()
	if cuts == nil || cuts.Add(-1) < 0 {
		return nil
	}
	member.killed.Store(true)
	_, err := admin.ask("CLIENT", "KILL", "ID", member.id)
	return err
}
