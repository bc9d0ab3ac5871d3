//! Commands that help to write rules: ACL CAT (<https://redis.io/docs/latest/commands/acl-cat/>),
//! DRYRUN and GENPASS.

use acl::{Denied, User};
use base::number::parse_i64;
use command::Category;
use engine::{AclError, Error, echo, echo_start};
use resp::{Args, Reply};

use crate::command_table::entry::Entry;
use crate::execution::access;
use crate::execution::executor::ECHOED_BYTES_MAX;
use crate::execution::node_cx::NodeCx;

/// Default number of bits of a password.
const PASSWORD_BITS: i64 = 256;
/// The most bits of a password.
const PASSWORD_BITS_MAX: i64 = 4096;
/// Bits of a hexadecimal digit.
const DIGIT_BITS: usize = 4;

/// The error for a subcommand with too many arguments.
pub(super) fn wrong_form(args: &Args<'_>) -> Error {
    let name = echo_start(args.text(1), ECHOED_BYTES_MAX);
    Error::SubcommandForm(name, "ACL")
}

pub(super) fn categories(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let name = match args.len() {
        2 => {
            let names: Vec<&str> = Category::EVERY.names().collect();
            reply.array(names.len());
            names.iter().for_each(|name| reply.bulk(name.trim_start_matches('@').as_bytes()));
            return Ok(());
        }
        3 => args.text(2),
        _ => return Err(wrong_form(args)),
    };
    let category = Category::from_name(name)
        .ok_or_else(|| AclError::NoSuchCategory(echo_start(name, ECHOED_BYTES_MAX)))?;
    let entries = cx.worker.table.entries().iter();
    let found: Vec<&Entry> =
        entries.filter(|entry| entry.spec.categories().has(category)).collect();
    reply.array(found.len());
    found.iter().for_each(|entry| reply.bulk(entry.name.as_bytes()));
    Ok(())
}

pub(super) fn dry_run(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let name = args.text(2);
    let user = cx.worker.node.users.find(name).ok_or_else(|| AclError::NoSuchUser(echo(name)))?;
    let request = args.tail(3);
    let entry = cx.worker.table.resolve(&request);
    let entry = entry.filter(|entry| !entry.lacks_subcommand(&request));
    let entry = entry.ok_or_else(|| AclError::NoSuchCommand(echo(request.name())))?;
    if !entry.spec.accepts(request.len()) {
        return Err(Error::Arity(entry.name.clone()));
    }
    match access::check(&user, entry, &request) {
        Ok(()) => reply.ok(),
        Err(denied) => reply.bulk(&denial_text(&user, entry, &request, denied)),
    }
    Ok(())
}

/// The text for a denial, with the name of the key or channel.
fn denial_text(user: &User, entry: &Entry, request: &Args<'_>, denied: Denied) -> Vec<u8> {
    let (at, kind) = match denied {
        Denied::Command => {
            let error = AclError::Command(echo(user.name()), entry.name.clone());
            let text = Error::from(error).text();
            return text.strip_prefix(b"NOPERM ").unwrap_or(&text).to_vec();
        }
        Denied::Option(word) => {
            let text = Error::from(AclError::Option(word)).text();
            return text.strip_prefix(b"ERR ").unwrap_or(&text).to_vec();
        }
        Denied::Key(at) => (at, "key"),
        Denied::Channel(at) => (at, "channel"),
    };
    let (start, end) = (b" has no permissions to access the '", format!("' {kind}"));
    [b"User ", &user.name()[..], start, request.text(at), end.as_bytes()].concat()
}

pub(super) fn password(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let bits = match args.len() {
        2 => PASSWORD_BITS,
        3 => parse_i64(args.text(2)).ok_or(Error::NotInteger)?,
        _ => return Err(wrong_form(args)),
    };
    let bits =
        usize::try_from(bits).ok().filter(|bits| (1..=PASSWORD_BITS_MAX as usize).contains(bits));
    let bits = bits.ok_or(AclError::PasswordBits(PASSWORD_BITS_MAX))?;
    let digits = bits.div_ceil(DIGIT_BITS);
    let mut secret = vec![0; digits.div_ceil(2)];
    cx.outside(|host| host.fill_random(&mut secret));
    let text: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    reply.bulk(&text.as_bytes()[..digits]);
    Ok(())
}
