//! Connection commands.

use crate::check::check;

#[test]
fn ping() {
    check(
        r#"
> PING
PONG
> PING "hello world"
"hello world"
> PING a b
-ERR wrong number of arguments for 'ping' command
"#,
    );
}

#[test]
fn unknown_commands() {
    check(
        r#"
> NOSUCH a "b c"
-ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b c' 
"#,
    );
}
