//! Users: the crate's ACL methods and rules, and clients that log in with a name and a password.

use redis::acl::{AclInfo, Rule};
use redis::{Commands, Connection, ErrorKind, RedisResult, Script, Value, pipe};

use crate::check::{ask, equal, eventually, holds, refused, try_ask};
use crate::combined::{Case, Session};

pub const CASES: &[Case] = &[
    ("user: may do what the rules say", may),
    ("user: refused", refused_login),
    ("user: rules change", changed),
    ("user: deleted", deleted),
    ("user: transactions and scripts", combined),
    ("user: inspected", inspected),
];

const PASSWORD: &str = "se cret";
const NO_KEY: &str = "NOPERM No permissions to access a key";

/// The user worker: all of `job:*`, and nothing dangerous.
fn create(r: &mut Connection) {
    let mut rules = vec![Rule::Reset, Rule::On, Rule::AddPass(PASSWORD.to_owned())];
    rules.push(Rule::Pattern("job:*".to_owned()));
    for category in ["read", "write", "connection", "transaction", "scripting"] {
        rules.push(Rule::AddCategory(category.to_owned()));
    }
    rules.push(Rule::RemoveCategory("dangerous".to_owned()));
    set(r, &rules);
}

fn set(r: &mut Connection, rules: &[Rule]) {
    let () = r.acl_setuser_rules("worker", rules).unwrap();
}

fn delete(r: &mut Connection) {
    equal("ACL DELUSER", r.acl_deluser(&["worker"]).unwrap(), 1);
}

fn no_command(name: &str) -> String {
    format!("NOPERM User worker has no permissions to run the '{name}' command")
}

fn may(s: &mut Session) {
    create(s.r);
    let mut w = s.login(PASSWORD).get_connection().unwrap();
    equal("ACL WHOAMI as admin", s.r.acl_whoami::<String>().unwrap().as_str(), "default");
    equal("SET", w.set::<_, _, String>("job:1", "v").unwrap().as_str(), "OK");
    equal("GET", w.get::<_, String>("job:1").unwrap().as_str(), "v");
    refused("another key", NO_KEY, w.get::<_, Value>("other"));
    refused("a second key", NO_KEY, w.mget::<_, Value>(&["job:1", "other"]));
    for (line, name) in
        [("FLUSHALL", "flushall"), ("CONFIG GET port", "config|get"), ("ACL WHOAMI", "acl|whoami")]
    {
        refused(line, &no_command(name), try_ask::<Value>(&mut w, line));
    }
    equal("the connection goes on", w.get::<_, String>("job:1").unwrap().as_str(), "v");
    delete(s.r);
}

fn refused_login(s: &mut Session) {
    create(s.r);
    let enter = |password| s.login(password).get_connection().map(|_| ());
    // In RESP2 the crate keeps the server's text to itself.
    let wrong = |answer: RedisResult<()>| {
        answer.is_err_and(|error| {
            error.kind() == ErrorKind::AuthenticationFailed || error.code() == Some("WRONGPASS")
        })
    };
    holds("a wrong password", wrong(enter("secret")), "");
    set(&mut s.another(), &[Rule::Off]);
    holds("a disabled user", wrong(enter(PASSWORD)), "");
    set(&mut s.another(), &[Rule::On]);
    equal("an enabled user", enter(PASSWORD).is_ok(), true);
    delete(s.r);
}

fn changed(s: &mut Session) {
    create(s.r);
    let mut w = s.login(PASSWORD).get_connection().unwrap();
    equal("before", w.set::<_, _, String>("job:1", "v").unwrap().as_str(), "OK");
    set(s.r, &[Rule::RemoveCommand("set".to_owned())]);
    refused("without SET", &no_command("set"), w.set::<_, _, Value>("job:1", "w"));
    equal("GET still", w.get::<_, String>("job:1").unwrap().as_str(), "v");
    set(s.r, &[Rule::AddCommand("set".to_owned()), Rule::Pattern("more:*".to_owned())]);
    equal("SET again", w.set::<_, _, String>("job:1", "w").unwrap().as_str(), "OK");
    equal("a new pattern", w.set::<_, _, String>("more:1", "w").unwrap().as_str(), "OK");
    delete(s.r);
}

fn deleted(s: &mut Session) {
    create(s.r);
    let client = s.login(PASSWORD);
    let mut w = client.get_connection().unwrap();
    let listed = |r: &mut Connection| ask::<String>(r, "CLIENT LIST").contains(" user=worker ");
    equal("CLIENT LIST has the user", listed(s.r), true);
    equal("ACL DELUSER", s.r.acl_deluser(&["worker", "nobody"]).unwrap(), 1);
    eventually("the connection is closed", || !listed(s.r));
    let answer = w.get::<_, Option<String>>("job:1");
    let cut = answer.as_ref().is_err_and(|error| error.is_io_error());
    holds("it cannot go on", cut, &answer);
    holds("nor come back", client.get_connection().is_err(), PASSWORD);
}

fn combined(s: &mut Session) {
    create(s.r);
    let mut w = s.login(PASSWORD).get_connection().unwrap();
    let mut run = |key| -> RedisResult<()> {
        pipe().atomic().set("job:1", "v").ignore().set(key, "v").ignore().query(&mut w)
    };
    let error = run("other").unwrap_err();
    equal("a transaction", error.code(), Some("EXECABORT"));
    let reason = "No permissions to access a key";
    holds("with the reason", error.to_string().contains(reason), &error);
    equal("nothing ran", ask(s.r, "DBSIZE"), 0);
    run("job:2").unwrap();
    equal("EXEC of what is allowed", ask(s.r, "DBSIZE"), 2);
    let reach = Script::new("return redis.call('GET', ARGV[1])");
    let mut script = |key, other| reach.key(key).arg(other).invoke::<String>(&mut w);
    equal("a script", script("job:1", "job:1").unwrap().as_str(), "v");
    refused("a script's key", NO_KEY, script("other", "job:1"));
    let text = format!(
        "ERR ACL failure in script: {reason} script: {}, on @user_script:1.",
        reach.get_hash()
    );
    refused("what it reaches for", &text, script("job:1", "other"));
    delete(s.r);
}

fn inspected(s: &mut Session) {
    s.r.acl_log_reset::<()>().unwrap();
    create(s.r);
    let user = s.r.acl_getuser::<_, Option<AclInfo>>("worker").unwrap().unwrap();
    holds("ACL GETUSER has flags", user.flags.contains(&Rule::On), &user);
    let category = Rule::AddCategory("scripting".to_owned());
    holds("ACL GETUSER has commands", user.commands.contains(&category), &user);
    equal("ACL GETUSER has keys", user.keys, vec![Rule::Pattern("job:*".to_owned())]);
    equal("ACL GETUSER of nobody", s.r.acl_getuser::<_, Option<AclInfo>>("nobody").unwrap(), None);
    let mut listed: Vec<String> = s.r.acl_list().unwrap();
    listed.retain(|line| line.starts_with("user worker on "));
    holds("ACL LIST", listed.len() == 1 && listed[0].contains(" ~job:* "), &listed);
    let mut users: Vec<String> = s.r.acl_users().unwrap();
    users.sort_unstable();
    equal("ACL USERS", users, vec!["default".to_owned(), "worker".to_owned()]);
    let mut dry_run = |key| s.r.acl_dryrun::<_, _, _, String>("worker", "GET", key).unwrap();
    equal("ACL DRYRUN", dry_run("job:1").as_str(), "OK");
    let text = "User worker has no permissions to access the 'other' key";
    equal("ACL DRYRUN of another key", dry_run("other").as_str(), text);
    let mut w = s.login(PASSWORD).get_connection().unwrap();
    for _ in 0..3 {
        refused("a denied GET", NO_KEY, w.get::<_, Value>("other"));
    }
    // The crate's acl_log takes entries for strings.
    let log: Vec<std::collections::HashMap<String, Value>> = ask(s.r, "ACL LOG");
    equal("ACL LOG has one entry", log.len(), 1);
    equal("ACL LOG counts", &log[0]["count"], &Value::Int(3));
    for (name, want) in
        [("reason", "key"), ("context", "toplevel"), ("object", "other"), ("username", "worker")]
    {
        equal("ACL LOG", &log[0][name], &Value::BulkString(want.as_bytes().to_vec()));
    }
    delete(s.r);
}
