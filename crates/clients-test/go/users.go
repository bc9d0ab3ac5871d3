// Users: go-redis's ACL methods, and clients that log in with a name and a password.

package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	noKey         = "NOPERM No permissions to access a key"
	wrongPassword = "WRONGPASS invalid username-password pair or user is disabled."
	password      = "se cret"
)

var userCases = map[string]func(session){
	"user: may do what the rules say": userMay,
	"user: refused":                   userRefused,
	"user: rules change":              rulesChange,
	"user: deleted":                   userDeleted,
	"user: transactions and scripts":  userCombined,
	"user: inspected":                 userInspected,
}

// create makes the user worker: all of `job:*`, and nothing dangerous.
func create(s session) any {
	return answer(s.ACLSetUser(ctx, "worker", "reset", "on", ">"+password, "~job:*", "+@read",
		"+@write", "+@connection", "+@transaction", "+@scripting", "-@dangerous").Result())
}

func noCommand(name string) string {
	return "NOPERM User worker has no permissions to run the '" + name + "' command"
}

func userMay(s session) {
	equal("ACL SETUSER", create(s), "OK")
	defer s.ACLDelUser(ctx, "worker")
	w := s.login(password)
	defer w.Close()
	equal("ACL WHOAMI as admin", answer(s.ACLWhoAmI(ctx).Result()), "default")
	equal("SET", answer(w.Set(ctx, "job:1", "v", 0).Result()), "OK")
	equal("GET", answer(w.Get(ctx, "job:1").Result()), "v")
	refused("another key", noKey, w.Get(ctx, "other").Err())
	refused("a second key", noKey, w.MGet(ctx, "job:1", "other").Err())
	refused("FLUSHALL", noCommand("flushall"), w.FlushAll(ctx).Err())
	refused("CONFIG GET", noCommand("config|get"), w.ConfigGet(ctx, "port").Err())
	refused("ACL WHOAMI", noCommand("acl|whoami"), w.ACLWhoAmI(ctx).Err())
	equal("the connection goes on", answer(w.Get(ctx, "job:1").Result()), "v")
}

func userRefused(s session) {
	create(s)
	defer s.ACLDelUser(ctx, "worker")
	enter := func(password string) any {
		w := s.login(password)
		defer w.Close()
		return answer(w.Ping(ctx).Result())
	}
	equal("a wrong password", asText(enter("secret")), wrongPassword)
	s.ACLSetUser(ctx, "worker", "off")
	equal("a disabled user", asText(enter(password)), wrongPassword)
	s.ACLSetUser(ctx, "worker", "on")
	equal("an enabled user", enter(password), "PONG")
}

func asText(value any) any {
	if err, is := value.(error); is {
		return err.Error()
	}
	return value
}

func rulesChange(s session) {
	create(s)
	defer s.ACLDelUser(ctx, "worker")
	client := s.login(password)
	defer client.Close()
	w := client.Conn()
	defer w.Close()
	equal("before", answer(w.Set(ctx, "job:1", "v", 0).Result()), "OK")
	s.ACLSetUser(ctx, "worker", "-set")
	refused("without SET", noCommand("set"), w.Set(ctx, "job:1", "w", 0).Err())
	equal("GET still", answer(w.Get(ctx, "job:1").Result()), "v")
	s.ACLSetUser(ctx, "worker", "+set", "~more:*")
	equal("SET again", answer(w.Set(ctx, "job:1", "w", 0).Result()), "OK")
	equal("a new pattern", answer(w.Set(ctx, "more:1", "w", 0).Result()), "OK")
}

func userDeleted(s session) {
	create(s)
	client := s.login(password)
	defer client.Close()
	w := client.Conn()
	defer w.Close()
	equal("PING", answer(w.Ping(ctx).Result()), "PONG")
	listed := func() bool { return strings.Contains(s.ClientList(ctx).Val(), " user=worker ") }
	equal("CLIENT LIST has the user", listed(), true)
	equal("ACL DELUSER", answer(s.ACLDelUser(ctx, "worker").Result()), 1)
	eventually("the connection is closed", func() bool { return !listed() })
	err := w.Get(ctx, "job:1").Err()
	holds("it cannot go on", err != nil && !errors.Is(err, redis.Nil), err)
	back := s.login(password)
	defer back.Close()
	refused("nor come back", wrongPassword, back.Ping(ctx).Err())
}

func userCombined(s session) {
	create(s)
	defer s.ACLDelUser(ctx, "worker")
	w := s.login(password)
	defer w.Close()
	run := func(key string) ([]redis.Cmder, error) {
		return w.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "job:1", "v", 0)
			return pipe.Set(ctx, key, "v", 0).Err()
		})
	}
	_, err := run("other")
	refused("a transaction", "EXECABORT Transaction discarded because of previous errors.", err)
	equal("nothing ran", answer(s.DBSize(ctx).Result()), 0)
	_, err = run("job:2")
	equal("EXEC of what is allowed", []any{err, s.DBSize(ctx).Val()}, []any{nil, int64(2)})
	reach := redis.NewScript("return redis.call('GET', ARGV[1])")
	script := func(key, other string) (any, error) {
		return reach.Run(ctx, w, []string{key}, other).Result()
	}
	equal("a script", answer(script("job:1", "job:1")), "v")
	_, err = script("other", "job:1")
	refused("a script's key", noKey, err)
	text := "ERR ACL failure in script: No permissions to access a key script: " + reach.Hash() +
		", on @user_script:1."
	_, err = script("job:1", "other")
	refused("what it reaches for", text, err)
}

func userInspected(s session) {
	s.ACLLogReset(ctx)
	create(s)
	defer s.ACLDelUser(ctx, "worker")
	// go-redis has no method for it; a map in RESP3 is a flat list in RESP2.
	user := s.Do(ctx, "ACL", "GETUSER", "worker").Val()
	for _, part := range []string{"on", "+@scripting", "~job:*"} {
		holds("ACL GETUSER has "+part, strings.Contains(short(user), part), user)
	}
	equal("ACL GETUSER of nobody", answer(s.Do(ctx, "ACL", "GETUSER", "nobody").Result()), nil)
	listed := slices.DeleteFunc(s.ACLList(ctx).Val(), func(line string) bool {
		return !strings.HasPrefix(line, "user worker on ")
	})
	holds("ACL LIST", len(listed) == 1 && strings.Contains(listed[0], " ~job:* "), listed)
	users := slices.Sorted(slices.Values(s.ACLUsers(ctx).Val()))
	equal("ACL USERS", users, []string{"default", "worker"})
	allowed := answer(s.ACLDryRun(ctx, "worker", "GET", "job:1").Result())
	equal("ACL DRYRUN", allowed, "OK")
	text := "User worker has no permissions to access the 'other' key"
	denied := answer(s.ACLDryRun(ctx, "worker", "GET", "other").Result())
	equal("ACL DRYRUN of another key", denied, text)
	w := s.login(password)
	defer w.Close()
	for range 3 {
		refused("a denied GET", noKey, w.Get(ctx, "other").Err())
	}
	log := s.ACLLog(ctx, 10).Val()
	equal("ACL LOG counts", []any{len(log), log[0].Count}, []any{1, int64(3)})
	seen := []string{log[0].Reason, log[0].Context, log[0].Object, log[0].Username}
	equal("ACL LOG", seen, []string{"key", "toplevel", "other", "worker"})
}
