// One line for each check, and the end of the program at the first one that does not hold.

package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"
)

// answer is what a command's Result gives: nil for a nil reply, and an error as an error.
func answer[T any](value T, err error) any {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return err
	}
	return value
}

// equal: the answer is `want`, in value and in type, but that integers are all one type.
func equal(name string, got, want any) {
	if !reflect.DeepEqual(wide(got), wide(want)) {
		fail(name, fmt.Sprintf("got %s, want %s", short(got), short(want)))
	}
	fmt.Println("ok", name)
}

func wide(value any) any {
	if number, is := value.(int); is {
		return int64(number)
	}
	return value
}

// holds: the condition is true; `seen` says what was looked at.
func holds(name string, condition bool, seen any) {
	if !condition {
		fail(name, "does not hold for "+short(seen))
	}
	fmt.Println("ok", name)
}

// between: the answer is from `low` to `high`, both included.
func between[T int64 | float64 | time.Duration](name string, got, low, high T) {
	holds(fmt.Sprintf("%s in %v..%v", name, low, high), low <= got && got <= high, got)
}

// refused: the command gave an error with exactly this text.
func refused(name, text string, err error) {
	if err == nil {
		fail(name, "got no error, want "+text)
	}
	equal(name, err.Error(), text)
}

// eventually: the call becomes true within some seconds: for what the server does in its own time.
func eventually(name string, call func() bool) {
	for deadline := time.Now().Add(10 * time.Second); !call(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			fail(name, "not within 10 seconds")
		}
	}
	fmt.Println("ok", name)
}

// fail ends the program.
func fail(name, reason string) {
	fmt.Printf("FAILED %s: %s\n", name, reason)
	os.Exit(1)
}

func short(value any) string {
	text := fmt.Sprintf("%#v", value)
	if err, is := value.(error); is {
		text = "the error " + err.Error()
	}
	if len(text) > 500 {
		text = text[:500] + "..."
	}
	return text
}
