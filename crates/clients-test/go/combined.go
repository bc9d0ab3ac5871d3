// The cases that every language has: cases/combined.txt says what they assert.

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// session is a client of the protocol under test, and how to make further ones.
type session struct {
	*redis.Client
}

// another is a client of its own.
func (s session) another() *redis.Client {
	return redis.NewClient(s.Options())
}

// login is a client of the user worker that does not try again what failed.
func (s session) login(password string) *redis.Client {
	options := *s.Options()
	options.Username, options.Password, options.MaxRetries = "worker", password, -1
	options.PoolSize = 1
	return redis.NewClient(&options)
}

func checkCombined(client *redis.Client) {
	cases := map[string]func(session){}
	for _, part := range []map[string]func(session){transactionCases, scriptCases, userCases} {
		maps.Copy(cases, part)
	}
	names := caseNames("combined.txt")
	listed := slices.Sorted(slices.Values(names))
	equal("the cases of the list", slices.Sorted(maps.Keys(cases)), listed)
	for _, name := range names {
		client.FlushAll(ctx)
		cases[name](session{client})
		fmt.Println("ok case", name)
	}
	client.FlushAll(ctx)
}

// caseNames are the names of cases that a file in cases/ lists.
func caseNames(name string) []string {
	return slices.DeleteFunc(strings.Split(shared(name), "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, "#")
	})
}

// shared is the contents of a file in cases/, which all languages read.
func shared(name string) string {
	text, err := os.ReadFile(filepath.Join(os.Getenv("WEFT_CASES"), name))
	equal("the file "+name, err, nil)
	return string(text)
}

// together runs `work` in as many goroutines, each with a client of its own.
func together(s session, count int, work func(number int, own *redis.Client)) {
	var all sync.WaitGroup
	for number := range count {
		all.Go(func() {
			own := s.another()
			defer own.Close()
			work(number, own)
		})
	}
	all.Wait()
}

// must ends the program when the command failed: for goroutines, whose every answer counts.
func must(name string, err error) {
	if err != nil {
		fail(name, err.Error())
	}
}
