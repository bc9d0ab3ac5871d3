//! The ACL file, and users of configuration files.

use node::config::{Acl, Config, Origin};

use crate::check::{check, run};
use crate::fake::TestServer;

const PATH: &str = "users.acl";
const DEFAULT: &str = "user default on nopass sanitize-payload ~* &* +@all\n";

/// A configuration with a file of users.
fn config(path: &str) -> Config {
    let acl = Acl { file: path.to_owned(), ..Acl::default() };
    Config { acl, ..Config::default() }
}

/// A server that has loaded an ACL file.
fn with_file(text: &str) -> TestServer {
    let server = TestServer::with_config(4, config(PATH));
    write(&server, text);
    server.node.load_users(|_| Ok(text.as_bytes().to_vec())).unwrap();
    server
}

fn write(server: &TestServer, text: &str) {
    server.host.acl_files.borrow_mut().insert(PATH.to_owned(), text.as_bytes().to_vec());
}

fn written(server: &TestServer) -> String {
    String::from_utf8(server.host.acl_files.borrow()[PATH].clone()).unwrap()
}

#[test]
fn a_server_without_file() {
    let why = "-ERR This Redis instance is not configured to use an ACL file. You may want to \
               specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming \
               you have a Redis configuration file set) in order to store users in the Redis \
               configuration.";
    check(&format!(
        "> ACL LOAD\n{why}\n> ACL SAVE\n{why}\n> ACL LOAD x\n-ERR wrong number of \
                    arguments for 'acl|load' command\n"
    ));
}

#[test]
fn users_are_saved_and_loaded() {
    let mut server = with_file("user alice on >pw +get ~a\n");
    run(
        &mut server,
        r#"
> ACL USERS -> ["alice", "default"]
b> AUTH alice pw -> OK
> ACL SETUSER bob on nopass (+set ~b) -> OK
> ACL SAVE -> OK
> ACL SETUSER bob +del -> OK
> ACL SETUSER carol on nopass -> OK
c> AUTH carol x -> OK
d> AUTH bob x -> OK
d> DEL b -> -NOPERM No permissions to access a key
> ACL LOAD -> OK
# Users that are not in the file are removed with their clients; others have the rules of the file.
> ACL USERS -> ["alice", "bob", "default"]
c> ACL WHOAMI -> "default"
d> DEL b -> -NOPERM User bob has no permissions to run the 'del' command
d> SET b v -> OK
b> GET a -> nil
"#,
    );
    let digest = "30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4";
    let saved = format!(
        "user alice on sanitize-payload #{digest} ~a resetchannels -@all +get\n\
         user bob on nopass sanitize-payload resetchannels -@all (~b resetchannels -@all +set)\n\
         {DEFAULT}"
    );
    assert_eq!(written(&server), saved);
}

#[test]
fn a_file_with_errors_changes_nothing() {
    let mut server = with_file("user alice on nopass +get ~a\n");
    run(&mut server, "b> AUTH alice x\nb< OK\n");
    write(&server, "user alice on nopass -get\n\nuser bob +nosuch nonsense\nuser alice\n");
    run(
        &mut server,
        r#"
> ACL LOAD
-ERR users.acl:3: Error in applying operation '+nosuch': Unknown command or category name in ACL.
   users.acl:3: Syntax error. WARNING: Duplicate user 'alice' found on line 4. WARNING: ACL errors
   detected, no change to the previously active ACL rules was performed
b> GET a -> nil
> ACL LIST
["user alice on nopass sanitize-payload ~a resetchannels -@all +get",
   "user default on nopass sanitize-payload ~* &* +@all"]
"#,
    );
    server.host.acl_files.borrow_mut().clear();
    run(
        &mut server,
        r#"
> ACL LOAD -> -ERR Error loading ACLs, opening file 'users.acl': No such file or directory
"#,
    );
}

#[test]
fn a_file_that_cannot_be_written() {
    run(
        &mut TestServer::with_config(1, config("folder/")),
        "> ACL SAVE\n-ERR There was an error trying to save the ACLs. Please check the server logs \
         for more information\n",
    );
}

#[test]
fn acl_load_ends_the_wait_of_a_client_that_loses_permission() {
    let mut server = with_file("user alice on nopass +@all ~*\n");
    run(&mut server, "b> AUTH alice x\nb< OK\nb> BLPOP l 0\nc> AUTH alice x\nc< OK\n");
    write(&server, "user alice on nopass +@all ~other\n");
    run(
        &mut server,
        r#"
> ACL LOAD -> OK
b< -NOPERM No permissions to access a key
c> GET k -> -NOPERM No permissions to access a key
"#,
    );
}

/// A server with the users of a configuration file.
fn configured(text: &str) -> Result<TestServer, String> {
    let mut config = Config::default();
    let loaded = config.load(text.as_bytes(), Origin::Stdin, &mut |_| Ok(vec![]));
    loaded.map_err(|error| error.reason)?;
    let server = TestServer::with_config(4, config);
    server.node.load_users(|path| Err(format!("nothing at {path}")))?;
    Ok(server)
}

#[test]
fn users_of_a_configuration_file() {
    let text = "requirepass pw\nuser alice on nopass +@all \"~a b\"\n";
    assert_eq!(configured(text).err().unwrap(), "Error in user declaration '~a b': Syntax error");
    let text = "USER alice on nopass +@all ~a (+get ~b )\nuser default on >x ~* +@all\n";
    let mut server = configured(text).unwrap();
    run(
        &mut server,
        r#"
> PING -> -NOAUTH Authentication required.
> AUTH x -> OK
> ACL LIST
~~ \["user alice on nopass sanitize-payload ~a resetchannels +@all (~b resetchannels -@all +get)",
   "user default on sanitize-payload #* ~\* resetchannels +@all"\]
"#,
    );
    *server.host.config_path.borrow_mut() = "/etc/weft.conf".to_owned();
    *server.host.config_file.borrow_mut() = text.as_bytes().to_vec();
    run(&mut server, "> ACL SETUSER bob\nOK\n> CONFIG REWRITE\nOK\n");
    let digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let rewritten = format!(
        "user alice on nopass sanitize-payload ~a resetchannels +@all (~b resetchannels -@all \
         +get)\nuser bob off sanitize-payload resetchannels -@all\n\n\
         # Generated by CONFIG REWRITE\n\
         user default on sanitize-payload #{digest} ~* resetchannels +@all\n"
    );
    let file = String::from_utf8(server.host.config_file.borrow().clone()).unwrap();
    assert_eq!(file, rewritten);
    // The written file gives the same users.
    let mut again = configured(&file).unwrap();
    run(&mut again, "> AUTH x\nOK\n> ACL USERS\n[\"alice\", \"bob\", \"default\"]\n");
}

#[test]
fn users_and_a_file_at_once() {
    let errors = [
        (
            "user a\nuser a",
            "Error in user declaration 'a': Duplicate user found. A user can only be \
          defined once in config files",
        ),
        ("user \"a b\"", "Spaces not allowed in ACL usernames"),
        ("user a (+get", "Error in user declaration '(+get': Unmatched parenthesis"),
        ("user", "Bad directive or wrong number of arguments"),
        (
            "user a &x\nacl-pubsub-default allchannels",
            "Error in the rules of the user 'a': Adding a pattern after the * pattern (or the \
             'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' \
             to start with an empty list of channels",
        ),
        (
            "user a\naclfile users.acl",
            "The configuration names an ACL file and has 'user' lines as well. Define the users \
             in one of the two places.",
        ),
        (
            "aclfile users.acl",
            "Can't start because of ACL errors: Error loading ACLs, opening file 'users.acl': \
             nothing at users.acl",
        ),
    ];
    for (text, error) in errors {
        assert_eq!(configured(text).err().unwrap(), error, "{text}");
    }
    assert!(configured("aclfile \"\"").is_ok());
}

#[test]
fn with_an_acl_file_config_rewrite_writes_no_users() {
    let mut server = with_file("");
    *server.host.config_path.borrow_mut() = "/etc/weft.conf".to_owned();
    *server.host.config_file.borrow_mut() = b"hz 10\nuser alice on\n".to_vec();
    run(&mut server, "> CONFIG REWRITE\nOK\n");
    let text = "hz 10\n\n# Generated by CONFIG REWRITE\naclfile \"users.acl\"\n";
    assert_eq!(server.host.config_file.borrow().as_slice(), text.as_bytes());
}

/// CLIENT KILL does not wait for work outside the gate.
#[test]
fn a_change_by_a_client_killed_meanwhile_is_undone() {
    let mut server = with_file(DEFAULT);
    write(&server, &format!("{DEFAULT}user bob on ~* +@all\n"));
    for change in ["ACL SETUSER alice on", "ACL LOAD", "CONFIG SET maxclients 7 hz 20"] {
        run(&mut server, "a> PING\na< PONG\n");
        server.kill_outside("a");
        run(&mut server, &format!("a> {change}\n"));
        server.close("a");
    }
    run(
        &mut server,
        r#"
> ACL USERS -> ["default"]
> CONFIG GET maxclients -> ["maxclients", "10000"]
"#,
    );
    assert!(server.host.applied.borrow().is_empty(), "a change was not undone");
    // A transaction does not leave the gate, and is executed as a whole.
    run(
        &mut server,
        r#"
b> MULTI -> OK
b> ACL SETUSER alice on -> QUEUED
b> SET k v -> QUEUED
b> EXEC -> [OK, OK]
"#,
    );
}
