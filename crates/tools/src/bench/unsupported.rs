//! Recognizes error replies of servers that lack the command or the option of a workload.
//!
//! A comparison goes on without figures of such a server. All other errors are failures, such as
//! those of a server that is out of memory, is loading its data or requires a password.

use crate::Error;
use crate::servers::target::{Role, ServerTarget};

/// The beginnings of errors for unknown commands and subcommands, after `ERR`, in lower case.
const UNKNOWN: [&str; 2] = ["unknown command", "unknown subcommand"];

/// Parts of errors for unknown options and arguments, in lower case.
const UNSUPPORTED: [&str; 5] = [
    "syntax error",
    "unsupported option",
    "unknown option",
    "unrecognized option",
    "wrong number of arguments",
];

/// The reply if it says that the server does not know the command. A peer of a subject may also
/// lack an option.
pub(super) fn unknown<'a>(
    target: &ServerTarget,
    all: &[ServerTarget],
    error: &'a Error,
) -> Option<&'a str> {
    let (Error::ErrorReplies { first: reply, .. } | Error::Refused { reply, .. }) = error else {
        return None;
    };
    let has_subject = all.iter().any(|target| target.role == Role::Subject);
    let is_compared = target.role == Role::Peer && has_subject;
    let is_excused = says_unknown(reply) || is_compared && says_unsupported(reply);
    is_excused.then_some(reply)
}

/// Whether an error is that of a command, a subcommand or an option that the server does not have.
pub(super) fn says_unsupported(reply: &str) -> bool {
    let text = of_request(reply);
    says_unknown(reply) || text.is_some_and(|text| UNSUPPORTED.iter().any(|say| text.contains(say)))
}

fn says_unknown(reply: &str) -> bool {
    let text = of_request(reply);
    text.is_some_and(|text| UNKNOWN.iter().any(|beginning| text.starts_with(beginning)))
}

/// The text of an error with the general code, in lower case. Errors about the state of the server
/// have codes of their own.
fn of_request(reply: &str) -> Option<String> {
    reply.strip_prefix("ERR ").map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::pin::Cpus;

    /// Whether the reply is excused for a role in a comparison of these roles.
    fn is_unknown(role: Role, beside: &[Role], reply: &str) -> bool {
        let target =
            |role| ServerTarget { role, ..ServerTarget::floor("weft", 1, Cpus::default()) };
        let all: Vec<ServerTarget> = beside.iter().copied().map(target).collect();
        let error = Error::Refused { step: String::new(), reply: reply.into() };
        let found = unknown(&target(role), &all, &error);
        assert!(found.is_none() || found == Some(reply));
        found.is_some()
    }

    #[test]
    fn a_server_that_does_not_know_a_command_is_left_out() {
        let both = [Role::Subject, Role::Peer];
        for role in both {
            let reply = "ERR unknown command 'EVAL', with args beginning with: 'x' ";
            assert!(is_unknown(role, &both, reply));
            assert!(is_unknown(role, &both, "ERR unknown subcommand 'X'. Try"));
        }
    }

    #[test]
    fn a_peer_of_a_subject_may_lack_an_option() {
        let both = [Role::Subject, Role::Peer];
        for reply in [
            "ERR syntax error",
            "ERR Unsupported option nosuch",
            "ERR Unknown option or number of arguments for CONFIG SET - 'x'",
            "ERR wrong number of arguments for 'hset' command",
            "ERR Error in ACL SETUSER modifier '%R~*': Syntax error",
        ] {
            assert!(is_unknown(Role::Peer, &both, reply), "{reply}");
            assert!(!is_unknown(Role::Subject, &both, reply), "{reply}");
            // Without a subject, the errors of all servers are failures.
            assert!(!is_unknown(Role::Peer, &both[1..], reply), "{reply}");
        }
    }

    #[test]
    fn the_state_of_a_server_is_no_excuse() {
        for reply in [
            "OOM command not allowed when used memory > 'maxmemory'.",
            "LOADING the dataset is in memory, not with a syntax error",
            "NOAUTH Authentication required.",
            "NOPERM User x has no permissions to run the 'set' command",
            "MISCONF errors writing to disk",
            "READONLY writes are refused",
            "MASTERDOWN no link",
            "BUSY a script runs",
            "TRYAGAIN several keys",
            "WRONGTYPE of a value",
            "ERR max number of clients reached",
            "ERR invalid password",
            "",
        ] {
            for role in [Role::Subject, Role::Peer] {
                assert!(!is_unknown(role, &[Role::Subject, Role::Peer], reply), "{reply}");
            }
        }
    }
}
