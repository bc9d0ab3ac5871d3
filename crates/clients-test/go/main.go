// go-redis drives the server; go-redis, rueidis and redigo do what each client does.
//
// Usage: clients-test resp2|resp3|auth|tls|unix|go-redis|rueidis|redigo, with the addresses in
// WEFT_* variables.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	ctx  = context.Background()
	port = os.Getenv("WEFT_PORT")
)

func main() {
	switch part := os.Args[1]; part {
	case "resp2":
		allCommands(2)
	case "resp3":
		allCommands(3)
	case "auth":
		auth()
	case "tls":
		overTLS()
	case "unix":
		overSocket()
	case "go-redis", "rueidis", "redigo":
		everyClient(part)
	default:
		fail(part, "no such part")
	}
}

// allCommands over one protocol. Options that are not set stay the client's own: with RESP3 it
// asks for maintenance notifications, which this server refuses as Redis 8.0 does.
func allCommands(protocol int) {
	connect := func(name string) *redis.Client {
		address := "127.0.0.1:" + port
		return redis.NewClient(&redis.Options{Addr: address, Protocol: protocol, ClientName: name})
	}
	r := connect("")
	conn := r.Conn()
	checkStrings(conn)
	checkKeys(conn)
	checkAdmin(conn, connect, protocol)
	conn.FlushAll(ctx)
	checkReplies(conn)
	conn.Close()
	checkCombined(r)
	checkLoad(r, connect)
	unconfigured := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	equal("a client without configuration", answer(unconfigured.Ping(ctx).Result()), "PONG")
}

// auth: a server with requirepass.
func auth() {
	password := os.Getenv("WEFT_PASSWORD")
	wrong := "WRONGPASS invalid username-password pair or user is disabled."
	connect := func(protocol int, username, password string) *redis.Client {
		return redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:" + port, Protocol: protocol, Username: username, Password: password,
			MaxRetries: -1,
		})
	}
	for _, protocol := range []int{2, 3} {
		r := connect(protocol, "", password)
		equal("SET with the password", answer(r.Set(ctx, "k", "v", 0).Result()), "OK")
		named := connect(protocol, "default", password)
		equal("with the user default too", answer(named.Get(ctx, "k").Result()), "v")
		// The client goes on after HELLO's NOAUTH and meets that of PING.
		without := connect(protocol, "", "").Ping(ctx).Err()
		refused("without", "NOAUTH Authentication required.", without)
		refused("a wrong password", wrong, connect(protocol, "", "wrong").Ping(ctx).Err())
		refused("a wrong user", wrong, connect(protocol, "nobody", password).Ping(ctx).Err())
	}
	r := connect(3, "", password).Conn()
	refused("AUTH with a wrong one", wrong, r.Auth(ctx, "wrong").Err())
	equal("the old login holds", answer(r.Get(ctx, "k").Result()), "v")
	equal("CONFIG SET requirepass", answer(r.ConfigSet(ctx, "requirepass", "new").Result()), "OK")
	refused("the old one is refused", wrong, connect(3, "", password).Ping(ctx).Err())
	equal("the new one is taken", answer(connect(3, "", "new").Ping(ctx).Result()), "PONG")
}

// overTLS: with the certificates checked on both sides.
func overTLS() {
	authority, err := os.ReadFile(os.Getenv("WEFT_CA"))
	equal("the authority's file", err, nil)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	own, err := tls.LoadX509KeyPair(os.Getenv("WEFT_CERT"), os.Getenv("WEFT_KEY"))
	equal("the client's files", err, nil)
	connect := func(protocol int, port string, config *tls.Config) *redis.Client {
		return redis.NewClient(&redis.Options{
			Addr: "localhost:" + port, Protocol: protocol, TLSConfig: config, MaxRetries: -1,
		})
	}
	for _, protocol := range []int{2, 3} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			config := &tls.Config{RootCAs: roots, MinVersion: version, MaxVersion: version}
			throughTLS(connect(protocol, port, config), tls.VersionName(version))
		}
	}
	mutual := os.Getenv("WEFT_MUTUAL_PORT")
	known := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}
	certified := connect(3, mutual, known)
	equal("PING with a client certificate", answer(certified.Ping(ctx).Result()), "PONG")
	anonymous := connect(3, mutual, &tls.Config{RootCAs: roots}).Ping(ctx).Err()
	holds("refused: without a client certificate", anonymous != nil, anonymous)
	unknown := connect(3, port, &tls.Config{}).Ping(ctx).Err()
	holds("refused: an unknown authority", unknown != nil, unknown)
	plain := connect(3, port, nil).Ping(ctx).Err()
	holds("refused: no TLS at all", plain != nil, plain)
}

func throughTLS(r *redis.Client, version string) {
	equal("PING over "+version, answer(r.Ping(ctx).Result()), "PONG")
	value := strings.Repeat("x", 3_000_000)
	equal("SET of 3 MB over "+version, answer(r.Set(ctx, "k", value, 0).Result()), "OK")
	holds("GET of 3 MB over "+version, r.Get(ctx, "k").Val() == value, "")
	pipe := r.Pipeline()
	var answers []*redis.StringCmd
	for i := range 2_000 {
		pipe.Set(ctx, fmt.Sprint("k:", i), i, 0)
		answers = append(answers, pipe.Get(ctx, fmt.Sprint("k:", i)))
	}
	_, err := pipe.Exec(ctx)
	equal("a pipeline over "+version, err, nil)
	equal("its last answer", answers[1_999].Val(), "1999")
	r.FlushDB(ctx)
}

// overSocket: the unix socket.
func overSocket() {
	path := os.Getenv("WEFT_SOCKET")
	for _, protocol := range []int{2, 3} {
		options := redis.Options{Network: "unix", Addr: path, Protocol: protocol}
		r := redis.NewClient(&options)
		equal("PING over the socket", answer(r.Ping(ctx).Result()), "PONG")
		equal("SET over it", answer(r.Set(ctx, "k", "v", 0).Result()), "OK")
		info := r.ClientInfo(ctx).Val()
		holds("CLIENT INFO has the path", strings.HasPrefix(info.Addr, path), info)
		tcp := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Protocol: protocol})
		equal("TCP sees the same keys", answer(tcp.Get(ctx, "k").Result()), "v")
	}
}
