// The connection and server commands: what clients and tools ask a server about itself.

package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// checkAdmin uses one connection; `connect` makes clients of the same protocol.
func checkAdmin(r *redis.Conn, connect func(name string) *redis.Client, protocol int) {
	connection(r, protocol)
	ownRecord(r, protocol)
	otherClients(r, connect)
	commands(r)
	configuration(r)
	information(r)
	slowLog(r)
}

func connection(r *redis.Conn, protocol int) {
	equal("PING", answer(r.Ping(ctx).Result()), "PONG")
	equal("PING with a text", answer(r.Do(ctx, "PING", "hi").Result()), "hi")
	equal("ECHO", answer(r.Echo(ctx, "héllo").Result()), "héllo")
	hello := r.Hello(ctx, protocol, "", "", "").Val()
	equal("HELLO has the protocol", hello["proto"], protocol)
	equal("HELLO has the server", hello["server"], "redis")
	holds("HELLO has the version", strings.HasPrefix(hello["version"].(string), "8.0."), hello)
	equal("HELLO has the mode", hello["mode"], "standalone")
	equal("HELLO has the role", hello["role"], "master")
	equal("HELLO has the id", hello["id"], answer(r.ClientID(ctx).Result()))
	clock := r.Time(ctx).Val()
	between("TIME less our own", time.Since(clock), -5*time.Second, 5*time.Second)
}

func ownRecord(r *redis.Conn, protocol int) {
	equal("CLIENT GETNAME of none", answer(r.ClientGetName(ctx).Result()), nil)
	equal("CLIENT SETNAME", answer(r.ClientSetName(ctx, "subject").Result()), true)
	equal("CLIENT GETNAME", answer(r.ClientGetName(ctx).Result()), "subject")
	before, err := r.ClientInfo(ctx).Result()
	equal("CLIENT INFO is understood", err, nil)
	arrived := strings.HasPrefix(before.LibName, "go-redis") && before.LibVer != ""
	holds("the client's own SETINFO arrived", arrived, before)
	version := redis.WithLibraryVersion("9.9")
	equal("CLIENT SETINFO", answer(r.ClientSetInfo(ctx, version).Result()), "OK")
	info := r.ClientInfo(ctx).Val()
	seen := []any{info.Name, info.LibVer, info.Resp, info.DB, info.User}
	equal("CLIENT INFO", seen, []any{"subject", "9.9", protocol, 0, "default"})
	equal("CLIENT INFO has the id", info.ID, answer(r.ClientID(ctx).Result()))
	addresses := strings.Contains(info.Addr, ":") && strings.Contains(info.LAddr, ":")
	holds("CLIENT INFO has the addresses", addresses, info)
	list := r.ClientList(ctx).Val()
	line := `(?m)^id=%d .* name=subject .* io-thread=\d+ tot-net-in=\d+ .* tot-cmds=\d+$`
	own := regexp.MustCompile(fmt.Sprintf(line, info.ID))
	holds("CLIENT LIST has this client and its thread", own.MatchString(list), list)
	equal("CLIENT NO-EVICT", answer(r.Do(ctx, "CLIENT", "NO-EVICT", "OFF").Result()), "OK")
	equal("CLIENT NO-TOUCH", answer(r.Do(ctx, "CLIENT", "NO-TOUCH", "OFF").Result()), "OK")
	equal("CLIENT GETREDIR", answer(r.Do(ctx, "CLIENT", "GETREDIR").Result()), -1)
}

func otherClients(r *redis.Conn, connect func(name string) *redis.Client) {
	client := connect("victim")
	other := client.Conn()
	id := other.ClientID(ctx).Val()
	listed := r.Do(ctx, "CLIENT", "LIST", "ID", id).String()
	holds("CLIENT LIST ID", strings.Contains(listed, " name=victim "), listed)
	normal := r.Do(ctx, "CLIENT", "LIST", "TYPE", "normal").String()
	both := strings.Contains(normal, " name=subject ") && strings.Contains(normal, " name=victim ")
	holds("CLIENT LIST TYPE", both, normal)
	kill := func() any { return answer(r.ClientKillByFilter(ctx, "ID", fmt.Sprint(id)).Result()) }
	equal("CLIENT KILL ID", kill(), 1)
	gone := func() bool { return !strings.Contains(r.ClientList(ctx).Val(), "name=victim") }
	eventually("the killed client is gone", gone)
	equal("CLIENT KILL of nobody", kill(), 0)
	refused("CLIENT KILL by address", "ERR No such client", r.ClientKill(ctx, "1.2.3.4:5").Err())
	equal("CLIENT UNBLOCK of nobody", answer(r.ClientUnblock(ctx, id).Result()), 0)
	equal("CLIENT PAUSE", answer(r.ClientPause(ctx, time.Millisecond).Result()), true)
	equal("CLIENT UNPAUSE", answer(r.ClientUnpause(ctx).Result()), true)
	other.Close()
	client.Close()
}

func commands(r *redis.Conn) {
	count, err := r.Do(ctx, "COMMAND", "COUNT").Int64()
	holds("COMMAND COUNT", err == nil && count > 60, count)
	table, err := r.Command(ctx).Result()
	equal("COMMAND is understood", err, nil)
	equal("COMMAND lists as many", len(table), count)
	get := table["get"]
	keys := []any{get.Arity, get.FirstKeyPos, get.LastKeyPos, get.StepCount, get.ReadOnly}
	equal("COMMAND has GET's keys", keys, []any{int8(2), int8(1), int8(1), int8(1), true})
	holds("COMMAND has GET's flags", slices.Contains(get.Flags, "fast"), get.Flags)
	rows, _ := r.Do(ctx, "COMMAND", "INFO", "mset", "nosuch").Slice()
	equal("COMMAND INFO", []any{rows[0].([]any)[0], rows[1]}, []any{"mset", nil})
	docs := r.Do(ctx, "COMMAND", "DOCS", "set").Val()
	set := fields(fields(docs)["set"])
	equal("COMMAND DOCS", []any{set["group"], set["since"]}, []any{"string", "1.0.0"})
	holds("COMMAND DOCS has a summary of SET", len(set["summary"].(string)) > 10, set)
	found := answer(r.CommandGetKeys(ctx, "MSET", "a", "1", "b", "2").Result())
	equal("COMMAND GETKEYS", found, []string{"a", "b"})
	strs := r.CommandList(ctx, &redis.FilterBy{ACLCat: "string"}).Val()
	holds("COMMAND LIST", slices.Contains(strs, "get") && !slices.Contains(strs, "ping"), strs)
}

// fields is a map reply: in RESP2 it is a flat list.
func fields(reply any) map[any]any {
	if pairs, is := reply.(map[any]any); is {
		return pairs
	}
	pairs := map[any]any{}
	for pair := range slices.Chunk(reply.([]any), 2) {
		pairs[pair[0]] = pair[1]
	}
	return pairs
}

func configuration(r *redis.Conn) {
	const effort = "active-expire-effort"
	get := func() any { return answer(r.ConfigGet(ctx, effort).Result()) }
	equal("CONFIG GET", get(), map[string]string{effort: "1"})
	equal("CONFIG SET", answer(r.ConfigSet(ctx, effort, "7").Result()), "OK")
	equal("CONFIG GET after SET", get(), map[string]string{effort: "7"})
	r.ConfigSet(ctx, effort, "1")
	both := r.ConfigGet(ctx, "databas*").Val()
	equal("CONFIG GET of a pattern", slices.Collect(maps.Keys(both)), []string{"databases"})
	none := answer(r.ConfigGet(ctx, "no-such-thing").Result())
	equal("CONFIG GET of nothing", none, map[string]string{})
	equal("CONFIG RESETSTAT", answer(r.ConfigResetStat(ctx).Result()), "OK")
}

func information(r *redis.Conn) {
	info := r.InfoMap(ctx).Val()
	version := info["Server"]["redis_version"]
	holds("INFO has the version", strings.HasPrefix(version, "8.0."), version)
	number := regexp.MustCompile(`^\d+$`)
	for section, names := range map[string][]string{
		"Server":  {"process_id", "tcp_port", "uptime_in_seconds"},
		"Clients": {"connected_clients"},
		"Memory":  {"used_memory"},
		"Stats":   {"total_commands_processed", "keyspace_hits", "expired_keys"},
	} {
		for _, name := range names {
			value := info[section][name]
			holds("INFO has "+name+" as a number", number.MatchString(value), value)
		}
	}
	equal("INFO has the role", info["Replication"]["role"], "master")
	r.Set(ctx, "k", "v", 100*time.Second)
	info = r.InfoMap(ctx, "keyspace").Val()
	keyspace := info["Keyspace"]["db0"]
	holds("INFO keyspace", strings.HasPrefix(keyspace, "keys=1,expires=1,"), info)
	equal("INFO of one section only", len(info), 1)
	stats := r.InfoMap(ctx, "commandstats").Val()
	set := stats["Commandstats"]["cmdstat_set"]
	holds("INFO commandstats", regexp.MustCompile("^calls=[1-9]").MatchString(set), stats)
	r.FlushDB(ctx)
}

func slowLog(r *redis.Conn) {
	r.ConfigSet(ctx, "slowlog-log-slower-than", "0")
	r.Set(ctx, "slow", "log", 0)
	r.ConfigSet(ctx, "slowlog-log-slower-than", "10000")
	var found []redis.SlowLog
	for _, entry := range r.SlowLogGet(ctx, 10).Val() {
		if slices.Equal(entry.Args, []string{"set", "slow", "log"}) {
			found = append(found, entry)
		}
	}
	equal("SLOWLOG GET", len(found), 1)
	between("SLOWLOG has the start", time.Since(found[0].Time), -5*time.Second, 10*time.Second)
	length := r.SlowLogLen(ctx).Val()
	holds("SLOWLOG LEN", length >= 1, length)
	equal("SLOWLOG RESET", answer(r.SlowLogReset(ctx).Result()), "OK")
	equal("SLOWLOG LEN after it", answer(r.SlowLogLen(ctx).Result()), 0)
	r.Del(ctx, "slow")
}
