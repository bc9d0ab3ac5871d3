//! CLIENT KILL (<https://redis.io/docs/latest/commands/client-kill/>).
//!
//! CLIENT KILL marks a client as killed and shuts down its socket; the client's owner thread closes
//! it a moment later. A client is marked only once, and a marked client is no longer listed. Each
//! command checks the mark when it starts, and the reply to CLIENT KILL waits for all commands that
//! started before. So no request of a killed client takes effect after that reply.

use command::{Argument, Shape, Spec};
use engine::{ConnectionError, Error, echo};
use resp::{Args, Reply};

use super::admin;
use super::list::client_type;
use crate::clients::record::{ClientRecord, ClientType};
use crate::clients::users::UserRegistry;
use crate::execution::node_cx::NodeCx;
use crate::execution::outcome::Outcome;

const TYPES: Shape = Shape::OneOf(&[
    Argument::word("normal", "NORMAL"),
    Argument::word("master", "MASTER").since("3.2.0"),
    Argument::word("slave", "SLAVE"),
    Argument::word("replica", "REPLICA").since("5.0.0"),
    Argument::word("pubsub", "PUBSUB"),
]);

const ADDRESS: Argument = Argument::new("addr", Shape::String).display("ip:port");

const FILTERS: Shape = Shape::OneOf(&[
    Argument::new("client-id", Shape::Integer).after("ID").optional().since("2.8.12"),
    Argument::new("client-type", TYPES).after("TYPE").optional().since("2.8.12"),
    Argument::new("username", Shape::String).after("USER").optional(),
    ADDRESS.after("ADDR").optional(),
    Argument { name: "laddr", ..ADDRESS }.after("LADDR").optional().since("6.2.0"),
    Argument::new(
        "skipme",
        Shape::OneOf(&[Argument::word("yes", "YES"), Argument::word("no", "NO")]),
    )
    .after("SKIPME")
    .optional(),
    Argument::new("maxage", Shape::Integer).after("MAXAGE").optional().since("7.4.0"),
]);

pub(super) const SPEC: Spec = admin("kill", -3, "2.4.0")
    .summary("Closes the connections that match all filters.")
    .complexity("O(N) in the connections")
    .history(&[
        ("2.8.12", "Takes filters."),
        ("2.8.12", "KillFilter `ID`."),
        ("3.2.0", "Type `master`."),
        ("5.0.0", "Type `replica`, with `slave` as its old name."),
        ("6.2.0", "KillFilter `LADDR`."),
        ("7.4.0", "KillFilter `MAXAGE`."),
    ])
    .arguments(&[Argument::new(
        "filter",
        Shape::OneOf(&[
            Argument { name: "old-format", ..ADDRESS }.deprecated("2.8.12"),
            Argument::new("new-format", FILTERS).multiple(),
        ]),
    )]);

/// The clients to kill: those that match every given filter.
struct KillFilter<'a> {
    id: Option<u64>,
    client_type: Option<ClientType>,
    user: Option<&'a [u8]>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    age_seconds_min: Option<i64>,
    spares_me: bool,
}

pub(super) fn kill(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let is_old_form = args.len() == 3;
    let users = &cx.worker.node.users;
    let filter = if is_old_form { old_form(args) } else { parse(args, users)? };
    let me = cx.session.record.id;
    let steady_ms = cx.worker.turn.steady_ms;
    let (mut killed, mut kills_me) = (0, false);
    let mut others = Vec::new();
    let node = &cx.worker.node;
    for record in node.clients.all() {
        let is_me = record.id == me;
        if is_me && filter.spares_me
            || !filter.takes(&record, steady_ms)
            || !is_me && !node.kill(&record)
        {
            continue;
        }
        killed += 1;
        if is_me {
            node.stop_counting(&record);
            kills_me = true;
        } else {
            others.push(record);
        }
    }
    if kills_me {
        // The client's own connection is closed after the reply.
        cx.outcome = Outcome::Close;
    }
    if !others.is_empty() {
        cx.after_grace(move |_, host| {
            others.iter().for_each(|record| host.close_client(record));
            if kills_me { Outcome::Close } else { Outcome::Done }
        });
    }
    match (is_old_form, killed) {
        (false, killed) => reply.int(killed),
        (true, 0) => return Err(ConnectionError::NoSuchClient.into()),
        (true, _) => reply.ok(),
    }
    Ok(())
}

impl KillFilter<'_> {
    fn takes(&self, record: &ClientRecord, steady_ms: i64) -> bool {
        let age_seconds = steady_ms.div_euclid(1000) - record.created_ms.div_euclid(1000);
        self.id.is_none_or(|id| id == record.id)
            && self.client_type.is_none_or(|wanted| wanted == record.client_type())
            && self.user.is_none_or(|name| record.is_user(name))
            && self.address.is_none_or(|address| address == record.address.as_bytes())
            && self.local_address.is_none_or(|address| address == record.local_address.as_bytes())
            && self.age_seconds_min.is_none_or(|min| age_seconds >= min)
    }
}

/// The old form, `CLIENT KILL addr`, with which a client may kill itself.
fn old_form<'a>(args: &Args<'a>) -> KillFilter<'a> {
    KillFilter {
        id: None,
        client_type: None,
        user: None,
        address: Some(args.text(2)),
        local_address: None,
        age_seconds_min: None,
        spares_me: false,
    }
}

/// Parses pairs of a filter's name and its value; the last one with the same name counts.
fn parse<'a>(args: &mut Args<'a>, users: &UserRegistry) -> Result<KillFilter<'a>, Error> {
    let mut filter = KillFilter { address: None, spares_me: true, ..old_form(args) };
    args.seek(2);
    while let Some(name) = args.next() {
        let value = args.next().ok_or(Error::Syntax)?;
        let number = || base::number::parse_i64(value);
        match name.to_ascii_lowercase().as_slice() {
            b"id" => {
                let id = number().filter(|id| *id > 0).and_then(|id| u64::try_from(id).ok());
                filter.id = Some(id.ok_or(ConnectionError::KillId)?);
            }
            b"maxage" => {
                let age = number().ok_or(ConnectionError::AgeNotInteger)?;
                if age <= 0 {
                    return Err(ConnectionError::Age.into());
                }
                filter.age_seconds_min = Some(age);
            }
            b"type" => filter.client_type = Some(client_type(value)?),
            b"addr" => filter.address = Some(value),
            b"laddr" => filter.local_address = Some(value),
            b"user" if users.find(value).is_some() => filter.user = Some(value),
            b"user" => return Err(ConnectionError::NoSuchUser(echo(value)).into()),
            b"skipme" if value.eq_ignore_ascii_case(b"yes") => filter.spares_me = true,
            b"skipme" if value.eq_ignore_ascii_case(b"no") => filter.spares_me = false,
            _ => return Err(Error::Syntax),
        }
    }
    Ok(filter)
}
