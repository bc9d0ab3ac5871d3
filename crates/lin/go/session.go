// One connection, which records what it does.

package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// answerTimeMax is how long the server may take for one reply. A longer time means that the server
// forgot to wake a client.
const answerTimeMax = 20 * time.Second

// began is the zero of the one clock of all histories, which never goes back.
var began = time.Now()

func now() int64 { return int64(time.Since(began)) }

// errCut is a connection that was cut on purpose.
var errCut = errors.New("the connection was cut")

var sessionsOpened atomic.Int64

// A session is one connection. Whoever uses it waits for each batch.
type session struct {
	number int
	// The server's name of it.
	id     string
	socket net.Conn
	reader *bufio.Reader
	out    []byte
	fault  *fault
	// Somebody has asked the server to close it.
	killed atomic.Bool
	// How often the history may still cut a connection.
	cuts atomic.Pointer[atomic.Int32]
}

func openSession(address string, fault *fault) (*session, error) {
	socket, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &session{
		number: int(sessionsOpened.Add(1)),
		socket: socket,
		reader: bufio.NewReaderSize(socket, 64<<10),
		fault:  fault,
	}
	said, err := s.ask("CLIENT", "ID")
	s.id = said.text
	return s, err
}

func (s *session) close() { s.socket.Close() }

// ask sends one request outside of histories.
func (s *session) ask(words ...string) (reply, error) {
	s.out = appendRequest(s.out[:0], words)
	if err := s.send(); err != nil {
		return reply{}, err
	}
	return s.receive()
}

// mustSay is ask where only one answer is right.
func (s *session) mustSay(want reply, words ...string) error {
	said, err := s.ask(words...)
	if err == nil && !said.equal(want) {
		err = fmt.Errorf("%q said %v", words, said)
	}
	return err
}

func (s *session) send() error {
	s.socket.SetDeadline(time.Now().Add(answerTimeMax))
	_, err := s.socket.Write(s.out)
	return s.explain(err)
}

func (s *session) receive() (reply, error) {
	said, err := readReply(s.reader)
	return said, s.explain(err)
}

func (s *session) explain(err error) error {
	if err != nil && s.killed.Load() {
		return errCut
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("no reply within %v: %w", answerTimeMax, err)
	}
	return err
}

// perform sends the operations together, reads their replies, and records the times. With `cut`
// the connection is closed while they are under way. After an error, the operations without a
// reply may have taken effect or not.
func (s *session) perform(batch []*operation, cut time.Duration) error {
	for _, o := range batch {
		o.client, o.ret = s.number, never
	}
	if s.fault != nil && s.fault.perform(s, batch) {
		return nil
	}
	return s.exchange(batch, cut)
}

func (s *session) exchange(batch []*operation, cut time.Duration) error {
	s.out = s.out[:0]
	for _, o := range batch {
		s.out = o.append(s.out)
	}
	called := now()
	for _, o := range batch {
		o.call = called
	}
	if err := s.send(); err != nil {
		return err
	}
	if cut > 0 {
		time.Sleep(cut)
		s.close()
		return errCut
	}
	for _, o := range batch {
		said, err := s.outcome(o)
		if err != nil {
			return err
		}
		o.ret, o.reply, o.answered = now(), o.normal(said), true
	}
	return nil
}

// append writes the operation as it goes over the wire.
func (o *operation) append(out []byte) []byte {
	switch o.form {
	case single:
		return appendRequest(out, o.requests[0].wire())
	case script:
		return appendRequest(out, o.scriptCall())
	}
	out = appendRequest(out, []string{"MULTI"})
	for _, request := range o.requests {
		out = appendRequest(out, request.wire())
	}
	return appendRequest(out, []string{"EXEC"})
}

// outcome reads the replies to the operation, and returns the one that counts.
func (s *session) outcome(o *operation) (reply, error) {
	if o.form == transaction {
		for i := range len(o.requests) + 1 {
			said, err := s.receive()
			if err != nil {
				return said, err
			}
			want := "QUEUED"
			if i == 0 {
				want = "OK"
			}
			if said.kind != kindStatus || said.text != want {
				return said, fmt.Errorf("%v: MULTI or a command in it said %v", o, said)
			}
		}
	}
	return s.receive()
}

// normal is the reply with what has no order in one.
func (o *operation) normal(said reply) reply {
	if o.form == single {
		return said.sorted(commands[o.requests[0][0]].unordered)
	}
	if said.kind == kindArray && len(said.items) == len(o.requests) {
		for i, request := range o.requests {
			said.items[i] = said.items[i].sorted(commands[request[0]].unordered)
		}
	}
	return said
}
