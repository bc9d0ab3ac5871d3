//! CLIENT TRACKING (<https://redis.io/docs/latest/commands/client-tracking/>), CACHING,
//! TRACKINGINFO and GETREDIR.
//!
//! They are implemented in `propagation::invalidations`.

use command::{Argument, Flags, Shape, Spec};
use engine::{Error, TrackingError};
use resp::{Args, Reply};
use tracking::{Conflict, Options};

use super::own;
use crate::execution::node_cx::NodeCx;
use crate::propagation::invalidations::{begin, end, refusal};

pub(super) const CACHING: Spec = own("caching", 3, "6.0.0")
    .flags(Flags::SESSION)
    .summary("Sets whether the keys of the next command are tracked.")
    .complexity("O(1)")
    .arguments(&[Argument::new(
        "mode",
        Shape::OneOf(&[Argument::word("yes", "YES"), Argument::word("no", "NO")]),
    )]);

pub(super) const GETREDIR: Spec = own("getredir", 2, "6.0.0")
    .summary("Returns the ID of the client that gets the connection's tracking messages, or -1.");

pub(super) const TRACKING: Spec = own("tracking", -3, "6.0.0")
    .flags(Flags::SESSION)
    .summary("Turns notifications about changes of keys that the connection has read on or off.")
    .complexity("O(N) in the prefixes")
    .arguments(&[
        Argument::new(
            "status",
            Shape::OneOf(&[Argument::word("on", "ON"), Argument::word("off", "OFF")]),
        ),
        Argument::new("client-id", Shape::Integer).after("REDIRECT").optional(),
        Argument::new("prefix", Shape::String).after("PREFIX").optional().multiple_token(),
        Argument::word("bcast", "BCAST").optional(),
        Argument::word("optin", "OPTIN").optional(),
        Argument::word("optout", "OPTOUT").optional(),
        Argument::word("noloop", "NOLOOP").optional(),
    ]);

pub(super) const TRACKINGINFO: Spec = own("trackinginfo", 2, "6.2.0")
    .summary("Returns how the connection tracks keys.")
    .complexity("O(N) in the prefixes");

pub(super) fn tracking(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let options = parse(cx, args)?;
    match args.text(2).to_ascii_lowercase().as_slice() {
        b"on" => begin(cx.worker, cx.session, &options).map_err(refusal)?,
        b"off" => end(cx.worker, cx.session),
        _ => return Err(Error::Syntax),
    }
    reply.ok();
    Ok(())
}

fn parse<'a>(cx: &NodeCx<'_>, args: &mut Args<'a>) -> Result<Options<'a>, Error> {
    let mut options = Options::default();
    args.seek(3);
    while let Some(word) = args.next() {
        match word.to_ascii_lowercase().as_slice() {
            b"redirect" if args.remaining() > 0 => {
                if options.redirect != 0 {
                    return Err(TrackingError::SecondRedirect.into());
                }
                let id = args.next().and_then(base::number::parse_i64).ok_or(Error::NotInteger)?;
                let id = u64::try_from(id).unwrap_or(0);
                if cx.worker.node.clients.find(id).is_none() {
                    return Err(TrackingError::NoSuchTarget.into());
                }
                options.redirect = id;
            }
            b"prefix" if args.remaining() > 0 => {
                options.prefixes.push(args.next().unwrap_or_default());
            }
            b"bcast" => options.broadcasts = true,
            b"optin" => options.opts_in = true,
            b"optout" => options.opts_out = true,
            b"noloop" => options.no_loop = true,
            _ => return Err(Error::Syntax),
        }
    }
    Ok(options)
}

pub(super) fn caching(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let state = cx.session.tracking.as_mut().ok_or_else(|| refusal(Conflict::NotTracking))?;
    let yes = match args.text(2).to_ascii_lowercase().as_slice() {
        b"yes" => true,
        b"no" => false,
        _ => return Err(Error::Syntax),
    };
    state.announce(yes).map_err(refusal)?;
    reply.ok();
    Ok(())
}

/// The target of redirection: 0 without redirection, -1 without tracking.
fn redirect(cx: &NodeCx<'_>, reply: &mut Reply<'_>) {
    match &cx.session.tracking {
        Some(state) => reply.unsigned(state.redirect),
        None => reply.int(-1),
    }
}

pub(super) fn redirection(
    cx: &mut NodeCx<'_>,
    _args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    redirect(cx, reply);
    Ok(())
}

pub(super) fn info(
    cx: &mut NodeCx<'_>,
    _args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let state = cx.session.tracking.as_deref();
    let mut words = vec![if state.is_some() { "on" } else { "off" }];
    words.extend(state.iter().flat_map(|state| state.words()));
    if cx.session.record.tracking.mode().is_some_and(|mode| mode.is_broken) {
        words.push("broken_redirect");
    }
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(words.len());
    words.iter().for_each(|word| reply.bulk(word.as_bytes()));
    reply.bulk(b"redirect");
    redirect(cx, reply);
    reply.bulk(b"prefixes");
    reply.array(state.map_or(0, |state| state.prefixes().len()));
    let prefixes = state.into_iter().flat_map(|state| state.prefixes());
    prefixes.for_each(|prefix| reply.bulk(prefix));
    Ok(())
}
