//! Publish and subscribe (<https://redis.io/docs/latest/commands/?group=pubsub>).
//!
//! A confirmation is part of its command's reply. Messages come after the confirmation of SUBSCRIBE
//! and before that of UNSUBSCRIBE. In a transaction they come after the reply of EXEC, as in Redis.

use ::command::{Access, Argument, Channels, Flags, Group, KeySpec, Row, Shape, Spec};
use base::glob;
use engine::{ConnectionError, Error, echo};
use pubsub::{ChannelKind, SharedName};
use resp::{Args, Out, Reply};

use super::help::{help, help_spec};
use crate::clients::session::ReplyMode;
use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::execution::outcome::Outcome;
use crate::propagation::subscribe;

const ANYTIME: Flags = Flags::PUBSUB.with(Flags::LOADING).with(Flags::STALE);
const PUBLISHES: Flags = ANYTIME.with(Flags::FAST).with(Flags::MAY_REPLICATE);
const SUBSCRIBES: Flags = ANYTIME
    .with(Flags::NOSCRIPT)
    .with(Flags::SUBSCRIBED)
    .with(Flags::HOME)
    .with(Flags::PUSHES)
    .with(Flags::SESSION);

const CHANNEL: Argument = Argument::new("channel", Shape::String);
const SHARD_CHANNEL: Argument = Argument::new("shardchannel", Shape::String);
const PATTERN: Argument = Argument::new("pattern", Shape::Pattern);
const MESSAGE: Argument = Argument::new("message", Shape::String);

/// Lets cluster clients route requests by shard channel.
const ROUTED: &[KeySpec] = &[KeySpec::to_end(1, 1, Access::NOT_KEY)];

const fn spec(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::PubSub, since).complexity("O(N) in the channels")
}

/// The pub/sub commands.
pub const ROWS: &[Row<NodeHandler>] = &[
    Row::new(
        spec("psubscribe", -2, "2.0.0")
            .summary("Subscribes the client to all channels that match patterns.")
            .complexity("O(N) in the patterns")
            .flags(SUBSCRIBES)
            .channels(Channels::Patterns)
            .arguments(&[PATTERN.multiple()]),
        |cx, args, reply| begin(cx, ChannelKind::Pattern, "psubscribe", args, reply),
    ),
    Row::new(
        spec("publish", 3, "2.0.0")
            .summary("Sends a message to the subscribers of a channel.")
            .complexity("O(N+M) in the subscribers and in the patterns that may match")
            .flags(PUBLISHES)
            .channels(Channels::First)
            .arguments(&[CHANNEL, MESSAGE]),
        |cx, args, reply| publish(cx, ChannelKind::Channel, args, reply),
    ),
    Row::container(
        spec("pubsub", -2, "2.8.0")
            .summary("A container for commands on subscriptions.")
            .complexity("Depends on the subcommand."),
        PUBSUB_ROWS,
    ),
    Row::new(
        spec("punsubscribe", -1, "2.0.0")
            .summary("Ends the client's subscriptions of patterns.")
            .complexity("O(N) in the patterns")
            .flags(SUBSCRIBES)
            .arguments(&[PATTERN.optional().multiple()]),
        |cx, args, reply| end(cx, ChannelKind::Pattern, "punsubscribe", args, reply),
    ),
    Row::new(
        spec("spublish", 3, "7.0.0")
            .summary("Sends a message to the subscribers of a shard channel.")
            .complexity("O(N) in the subscribers")
            .flags(PUBLISHES)
            .channels(Channels::First)
            .keys(&[KeySpec::one(1, Access::NOT_KEY)])
            .arguments(&[SHARD_CHANNEL, MESSAGE]),
        |cx, args, reply| publish(cx, ChannelKind::Shard, args, reply),
    ),
    Row::new(
        spec("ssubscribe", -2, "7.0.0")
            .summary("Subscribes the client to shard channels.")
            .flags(SUBSCRIBES)
            .channels(Channels::All)
            .keys(ROUTED)
            .arguments(&[SHARD_CHANNEL.multiple()]),
        |cx, args, reply| begin(cx, ChannelKind::Shard, "ssubscribe", args, reply),
    ),
    Row::new(
        spec("subscribe", -2, "2.0.0")
            .summary("Subscribes the client to channels.")
            .flags(SUBSCRIBES)
            .channels(Channels::All)
            .arguments(&[CHANNEL.multiple()]),
        |cx, args, reply| begin(cx, ChannelKind::Channel, "subscribe", args, reply),
    ),
    Row::new(
        spec("sunsubscribe", -1, "7.0.0")
            .summary("Ends the client's subscriptions of shard channels.")
            .flags(SUBSCRIBES)
            .keys(ROUTED)
            .arguments(&[SHARD_CHANNEL.optional().multiple()]),
        |cx, args, reply| end(cx, ChannelKind::Shard, "sunsubscribe", args, reply),
    ),
    Row::new(
        spec("unsubscribe", -1, "2.0.0")
            .summary("Ends the client's subscriptions of channels.")
            .flags(SUBSCRIBES)
            .arguments(&[CHANNEL.optional().multiple()]),
        |cx, args, reply| end(cx, ChannelKind::Channel, "unsubscribe", args, reply),
    ),
];

const PUBSUB_ROWS: &[Row<NodeHandler>] = &[
    Row::new(
        spec("channels", -2, "2.8.0")
            .summary("Returns the channels that have subscribers, or those that match a pattern.")
            .flags(ANYTIME)
            .arguments(&[PATTERN.optional()]),
        |cx, args, reply| channels(cx, ChannelKind::Channel, args, reply),
    ),
    Row::new(help_spec(Group::PubSub, "6.2.0"), help),
    Row::new(
        spec("numpat", 2, "2.8.0")
            .summary("Returns the number of patterns that have subscribers.")
            .complexity("O(1)")
            .flags(ANYTIME),
        patterns,
    ),
    Row::new(
        spec("numsub", -2, "2.8.0")
            .summary("Returns the numbers of subscribers of channels, without those of patterns.")
            .flags(ANYTIME)
            .arguments(&[CHANNEL.optional().multiple()]),
        |cx, args, reply| subscribers(cx, ChannelKind::Channel, args, reply),
    ),
    Row::new(
        spec("shardchannels", -2, "7.0.0")
            .summary("Returns the shard channels that have subscribers, all or by a pattern.")
            .flags(ANYTIME)
            .arguments(&[PATTERN.optional()]),
        |cx, args, reply| channels(cx, ChannelKind::Shard, args, reply),
    ),
    Row::new(
        spec("shardnumsub", -2, "7.0.0")
            .summary("Returns the numbers of subscribers of shard channels.")
            .flags(ANYTIME)
            .arguments(&[SHARD_CHANNEL.optional().multiple()]),
        |cx, args, reply| subscribers(cx, ChannelKind::Shard, args, reply),
    ),
];

fn publish(
    cx: &mut NodeCx<'_>,
    kind: ChannelKind,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let (pubsub, inboxes) = (&cx.worker.node.pubsub, &cx.worker.node.inboxes);
    if !cx.is_nested
        && inboxes.are_some_full()
        && pubsub.reaches(kind, args.text(1), |thread| inboxes.is_full(thread))
    {
        cx.outcome = Outcome::Congested;
        return Ok(());
    }
    let receivers = cx.worker.publish(kind, args.text(1), args.text(2));
    if !cx.is_nested {
        // Only its next messages wait.
        cx.worker.take_fills_inboxes();
    }
    reply.len(receivers);
    if receivers > 0 && !cx.is_nested && cx.session.reply_mode == ReplyMode::On {
        cx.worker.write_own_messages(cx.session, reply.out());
    }
    Ok(())
}

fn begin(
    cx: &mut NodeCx<'_>,
    kind: ChannelKind,
    word: &str,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    // Redis allows the other kinds in transactions and scripts for compatibility.
    if cx.is_nested && kind == ChannelKind::Shard {
        return Err(ConnectionError::NoSubscription("SSUBSCRIBE").into());
    }
    let bytes = args.iter().skip(1).map(<[u8]>::len).sum();
    if !subscribe::has_room(cx.session, args.len() - 1, bytes) {
        return Err(ConnectionError::TooManySubscriptions.into());
    }
    let resp3 = cx.session.resp3;
    for name in args {
        let count = subscribe::begin(cx.worker, cx.session, kind, name);
        confirm(reply.out(), resp3, word, Some(name), count);
    }
    subscribe::note_change(cx.worker, cx.session);
    Ok(())
}

fn end(
    cx: &mut NodeCx<'_>,
    kind: ChannelKind,
    word: &str,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let names: Vec<SharedName> = match args.len() {
        1 => subscribe::names(cx.session, kind),
        _ => args.map(SharedName::from).collect(),
    };
    let resp3 = cx.session.resp3;
    let out = reply.out();
    let is_nested = cx.is_nested;
    subscribe::end(cx.worker, cx.session, kind, &names, out, is_nested, |out, name, count| {
        confirm(out, resp3, word, Some(name), count);
    });
    if names.is_empty() {
        let count = subscribe::count(cx.session, kind);
        confirm(out, resp3, word, None, count);
    }
    subscribe::note_change(cx.worker, cx.session);
    Ok(())
}

/// Ends all subscriptions of the client, including MONITOR. It still receives earlier messages.
pub(super) fn unsubscribe_from_all(cx: &mut NodeCx<'_>, reply: &mut Reply<'_>) {
    let watched = cx.session.watches_requests();
    for kind in
        [ChannelKind::Channel, ChannelKind::Pattern, ChannelKind::Shard, ChannelKind::Requests]
    {
        let names = subscribe::names(cx.session, kind);
        if !names.is_empty() {
            let (worker, session, out) = (&mut *cx.worker, &*cx.session, reply.out());
            subscribe::end(worker, session, kind, &names, out, false, |_, _, _| {});
        }
    }
    subscribe::note_change(cx.worker, cx.session);
    if watched {
        cx.worker.node.requests_watched();
    }
}

/// Confirms that a subscription began or ended, or that there was none to end.
fn confirm(out: &mut Out, resp3: bool, word: &str, name: Option<&[u8]>, count: usize) {
    let mut reply = Reply::new(out, resp3);
    reply.push(3);
    reply.bulk(word.as_bytes());
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.len(count);
}

fn channels(
    cx: &mut NodeCx<'_>,
    kind: ChannelKind,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    if args.len() > 3 {
        return Err(Error::SubcommandForm(echo(args.text(1)), "PUBSUB"));
    }
    let mut names = cx.worker.node.pubsub.names(kind);
    if let Some(pattern) = args.at(2) {
        names.retain(|name| glob::matches(pattern, name, false));
    }
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name));
    Ok(())
}

fn patterns(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.len(cx.worker.node.pubsub.len(ChannelKind::Pattern));
    Ok(())
}

fn subscribers(
    cx: &mut NodeCx<'_>,
    kind: ChannelKind,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    reply.array((args.len() - 2) * 2);
    for name in args.iter().skip(2) {
        reply.bulk(name);
        reply.len(cx.worker.node.pubsub.clients(kind, name));
    }
    Ok(())
}
