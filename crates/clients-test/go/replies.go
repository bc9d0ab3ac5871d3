// The requests that all clients send alike: cases/replies.txt says their form.

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// checkReplies finds the database empty and leaves it so.
func checkReplies(r *redis.Conn) {
	text, err := os.ReadFile(os.Getenv("WEFT_REPLIES"))
	equal("the file of replies", err, nil)
	count := 0
	for _, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, " | ")
		equal(parts[0], reply(r, strings.Split(parts[2], " ")), parts[1])
		count++
	}
	holds("replies that all clients read alike", count > 30, count)
}

// reply is the reply in the notation of the file.
func reply(r *redis.Conn, words []string) string {
	request := make([]any, len(words))
	for i, word := range words {
		request[i] = word
	}
	switch value := answer(r.Do(ctx, request...).Result()).(type) {
	case nil:
		return "_"
	case error:
		return "-" + value.Error()
	case int64:
		return fmt.Sprint(":", value)
	default:
		return fmt.Sprint("+", value)
	}
}
