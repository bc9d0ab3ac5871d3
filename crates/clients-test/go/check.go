// Checks that print a line each. The first one that fails ends the program.

package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"
)

// answer makes one value of what a command returns: nil for a null reply, or the error.
func answer[T any](value T, err error) any {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return err
	}
	return value
}

// equal checks that the answer is `want`, in value and in type; all integers count as one type.
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

// holds checks a condition about `seen`.
func holds(name string, condition bool, seen any) {
	if !condition {
		fail(name, "does not hold for "+short(seen))
	}
	fmt.Println("ok", name)
}

// eventually waits until the call returns true.
func eventually(name string, call func() bool) {
	for deadline := time.Now().Add(10 * time.Second); !call(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			fail(name, "not within 10 seconds")
		}
	}
	fmt.Println("ok", name)
}

// must ends the program if a command failed.
func must(name string, err error) {
	if err != nil {
		fail(name, err.Error())
	}
}

// asText is the text of an error, which is what the cases expect.
func asText(value any) string {
	if err, is := value.(error); is {
		return err.Error()
	}
	return short(value)
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
