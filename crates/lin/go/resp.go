// Requests and replies on the wire.

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
)

// Kinds of reply. A null is one kind, whatever stands for it on the wire, and an error is its
// first word: linearizability is not about texts.
const (
	kindStatus  = '+'
	kindInteger = ':'
	kindText    = '$'
	kindNull    = '_'
	kindError   = '-'
	kindArray   = '*'
)

// A reply as the server gives it and as the model expects it.
type reply struct {
	kind  byte
	text  string
	items []reply
}

var (
	replyOK   = reply{kind: kindStatus, text: "OK"}
	replyNull = reply{kind: kindNull}
)

// errNoReply is what bytes are that follow no rule of the protocol.
var errNoReply = errors.New("the server sent bytes that are no reply")

func integer(n int64) reply { return reply{kind: kindInteger, text: strconv.FormatInt(n, 10)} }

func oneOrZero(yes bool) reply {
	if yes {
		return integer(1)
	}
	return integer(0)
}

func text(s string) reply { return reply{kind: kindText, text: s} }

func failure(code string) reply { return reply{kind: kindError, text: code} }

func array(items []reply) reply { return reply{kind: kindArray, items: items} }

func texts(list []string) reply {
	items := make([]reply, len(list))
	for i, s := range list {
		items[i] = text(s)
	}
	return array(items)
}

func (r reply) equal(other reply) bool {
	if r.kind != other.kind || r.text != other.text || len(r.items) != len(other.items) {
		return false
	}
	for i := range r.items {
		if !r.items[i].equal(other.items[i]) {
			return false
		}
	}
	return true
}

func (r reply) String() string {
	switch r.kind {
	case kindNull:
		return "nil"
	case kindText:
		return shown(r.text)
	case kindError:
		return "error " + r.text
	case kindArray:
		parts := make([]string, len(r.items))
		for i, item := range r.items {
			parts[i] = item.String()
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return r.text
}

// shown is a text as a report prints it: quoted where it is not plain, cut where it is long.
func shown(s string) string {
	const charsMax = 40
	if len(s) > charsMax {
		return fmt.Sprintf("%q..(%d bytes)", s[:charsMax], len(s))
	}
	plain := func(c rune) bool { return c > ' ' && c < 127 && c != '"' }
	if s != "" && strings.IndexFunc(s, func(c rune) bool { return !plain(c) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

// sorted brings the elements of a reply without an order, `step` of them belonging together, into
// one.
func (r reply) sorted(step int) reply {
	if r.kind != kindArray || step == 0 || len(r.items)%step != 0 {
		return r
	}
	groups := make([][]reply, 0, len(r.items)/step)
	for at := 0; at < len(r.items); at += step {
		groups = append(groups, r.items[at:at+step])
	}
	sort.Slice(groups, func(i, j int) bool { return groups[i][0].text < groups[j][0].text })
	items := make([]reply, 0, len(r.items))
	for _, group := range groups {
		items = append(items, group...)
	}
	return array(items)
}

// appendRequest writes a request in the form of the protocol.
func appendRequest(out []byte, words []string) []byte {
	out = append(out, '*')
	out = strconv.AppendInt(out, int64(len(words)), 10)
	for _, word := range words {
		out = append(out, "\r\n$"...)
		out = strconv.AppendInt(out, int64(len(word)), 10)
		out = append(out, "\r\n"...)
		out = append(out, word...)
	}
	return append(out, "\r\n"...)
}

// readReply reads one reply of RESP2.
func readReply(from *bufio.Reader) (reply, error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return reply{}, err
	}
	if len(line) < 3 || !strings.HasSuffix(line, "\r\n") {
		return reply{}, errNoReply
	}
	kind, rest := line[0], line[1:len(line)-2]
	switch kind {
	case kindStatus, kindInteger:
		return reply{kind: kind, text: rest}, nil
	case kindError:
		code, _, _ := strings.Cut(rest, " ")
		return failure(code), nil
	}
	length, err := strconv.Atoi(rest)
	if err != nil || length < -1 {
		return reply{}, errNoReply
	}
	switch {
	case length == -1:
		return replyNull, nil
	case kind == kindText:
		body := make([]byte, length+2)
		if _, err := io.ReadFull(from, body); err != nil {
			return reply{}, err
		}
		return text(string(body[:length])), nil
	case kind == kindArray:
		items := make([]reply, 0, min(length, 64))
		for i := 0; i < length; i++ {
			item, err := readReply(from)
			if err != nil {
				return reply{}, err
			}
			items = append(items, item)
		}
		return array(items), nil
	}
	return reply{}, errNoReply
}
