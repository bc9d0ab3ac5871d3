// Runs the cases with one library.
//
// Usage: clients-test go-redis|rueidis|redigo, with the server's addresses in WEFT_* variables.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	ctx  = context.Background()
	port = os.Getenv("WEFT_PORT")
)

// address says how to connect. Without a user name the client does not log in.
type address struct {
	hostPort       string
	protocol       int
	tls            *tls.Config
	user, password string
}

var libraries = map[string]func(address) subject{
	"go-redis": openGoRedis, "rueidis": openRueidis, "redigo": openRedigo,
}

// main runs the cases on each kind of connection that the library has.
func main() {
	library := os.Args[1]
	admin := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port}).Conn()
	for _, kind := range []string{"resp2", "resp3", "tls"} {
		if library == "redigo" && kind == "resp3" {
			continue
		}
		to := addressOf(kind)
		if library == "redigo" {
			to.protocol = 2
		}
		s := clientCases{libraries[library](to), to, admin}
		for _, name := range caseNames() {
			_, tracks := s.subject.(tracking)
			_, shards := s.subject.(sharding)
			if strings.HasPrefix(name, "tracking: ") && (kind == "resp2" || !tracks) ||
				name == "pubsub: shard channel" && !shards {
				continue
			}
			must("FLUSHALL", admin.FlushAll(ctx).Err())
			cases[name](s)
			fmt.Printf("ok case %s: %s\n", kind, name)
		}
		s.close()
	}
}

func addressOf(kind string) address {
	to := address{hostPort: "localhost:" + port, protocol: 3}
	if kind == "resp2" {
		to.protocol = 2
	}
	if kind == "tls" {
		authority, err := os.ReadFile(os.Getenv("WEFT_CA"))
		must("the authority's file", err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
		to.hostPort = "localhost:" + os.Getenv("WEFT_TLS_PORT")
		to.tls = &tls.Config{RootCAs: roots, ServerName: "localhost"}
	}
	if kind != "resp3" {
		to.user, to.password = os.Getenv("WEFT_USER"), os.Getenv("WEFT_PASSWORD")
	}
	return to
}

// caseNames are the names in cases/clients.txt.
func caseNames() []string {
	return slices.DeleteFunc(strings.Split(shared("clients.txt"), "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, "#")
	})
}

// shared is the contents of a file in cases/, which all languages read.
func shared(name string) string {
	text, err := os.ReadFile(filepath.Join(os.Getenv("WEFT_CASES"), name))
	must("the file "+name, err)
	return string(text)
}
