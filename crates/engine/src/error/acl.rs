//! The errors of access control, whose commands and checks are on layer 5.

use std::fmt;

/// Why access control denied a request, or why a command on users failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AclError {
    /// This user has no permission for this command.
    Command(String, String),
    /// The user has no permission for this access to one of the keys.
    Key,
    /// The user has no permission for one of the channels.
    Channel,
    /// The user may not read every key, which this option of SORT needs.
    Option(&'static str),
    /// A script called a command with this denial.
    InScript(Box<AclError>),
    /// EXEC: the command was allowed when it was queued, and is now denied for this reason.
    Revoked(&'static str),
    /// ACL SETUSER with a name that a line of a file cannot hold.
    UserName,
    /// ACL SETUSER: a wrong word, and its error.
    Word(String, String),
    /// ACL SETUSER with a selector that begins with this word and is not closed.
    Unmatched(String),
    /// ACL DELUSER of the default user.
    DefaultUser,
    /// ACL LOAD or ACL SAVE on a server without an ACL file.
    NoFile,
    /// ACL LOAD of a file that cannot be read or has errors, with the text.
    Load(String),
    /// ACL SAVE could not write the file.
    Save,
    /// ACL CAT: no category has this name.
    NoSuchCategory(String),
    /// ACL GENPASS with a number of bits that is out of range.
    PasswordBits(i64),
    /// ACL DRYRUN: no user has this name.
    NoSuchUser(String),
    /// ACL DRYRUN: no command has this name.
    NoSuchCommand(String),
}

impl fmt::Display for AclError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Command(user, command) => {
                let denied = "has no permissions to run the";
                return write!(f, "NOPERM User {user} {denied} '{command}' command");
            }
            Self::Key => "NOPERM No permissions to access a key",
            Self::Channel => "NOPERM No permissions to access a channel",
            Self::Option(word) => {
                let denied = "option of SORT denied due to insufficient ACL permissions.";
                return write!(f, "ERR {word} {denied}");
            }
            Self::InScript(denied) => {
                let text = denied.to_string();
                let (_, text) = text.split_once(' ').unwrap_or_default();
                return write!(f, "ERR ACL failure in script: {text}");
            }
            Self::Revoked(reason) => {
                return write!(
                    f,
                    "NOPERM ACLs rules changed between the moment the transaction was accumulated \
                     and the EXEC call. This command is no longer allowed for the following \
                     reason: {reason}"
                );
            }
            Self::UserName => "ERR Usernames can't contain spaces or null characters",
            Self::Word(word, reason) => {
                return write!(f, "ERR Error in ACL SETUSER modifier '{word}': {reason}");
            }
            Self::Unmatched(word) => {
                let unmatched = "Unmatched parenthesis in acl selector starting at";
                return write!(f, "ERR {unmatched} '{word}'.");
            }
            Self::DefaultUser => "ERR The 'default' user cannot be removed",
            Self::NoFile => {
                "ERR This Redis instance is not configured to use an ACL file. You may want to \
                 specify users via the ACL SETUSER command and then issue a CONFIG REWRITE \
                 (assuming you have a Redis configuration file set) in order to store users in \
                 the Redis configuration."
            }
            Self::Load(errors) => return write!(f, "ERR {errors}"),
            Self::Save => {
                "ERR There was an error trying to save the ACLs. Please check the server logs for \
                 more information"
            }
            Self::NoSuchCategory(name) => return write!(f, "ERR Unknown category '{name}'"),
            Self::PasswordBits(most) => {
                return write!(
                    f,
                    "ERR ACL GENPASS argument must be the number of bits for the output \
                     password, a positive number up to {most}"
                );
            }
            Self::NoSuchUser(name) => return write!(f, "ERR User '{name}' not found"),
            Self::NoSuchCommand(name) => return write!(f, "ERR Command '{name}' not found"),
        })
    }
}
