//! Writes what a workload expects: its preparation once, its data key by key.

use std::ops::ControlFlow;

use fastrand::Rng;

use super::shape::RequestShape;
use super::template::Template;
use crate::Error;
use crate::client::cluster::SlotSet;
use crate::client::session::ServerSession;

/// How many commands a fill sends before it reads their replies: enough to hide the round trip,
/// and few enough that the replies fit in the socket's buffers.
const BATCH_COUNT: u64 = 256;

/// The same in bytes, which large values reach first.
const BATCH_BYTES_MAX: usize = 256 * 1024;

/// Sends the template `text` once.
///
/// # Errors
/// The connection fails, or a reply is an error.
pub fn prepare(
    session: &mut ServerSession,
    text: &str,
    shape: &RequestShape,
    seed: u64,
) -> Result<(), Error> {
    let mut template = Template::compile(text, shape)?;
    let (mut request, mut rng) = (Vec::new(), Rng::with_seed(seed));
    template.draw_key(shape.first, &mut rng);
    template.append(&mut request, &mut rng);
    session.exchange("the preparation", &request, template.answer().replies).map(drop)
}

/// Sends the template `text` once for every key of the range, in order.
///
/// # Errors
/// The connection fails, or a reply is an error other than that the data exists.
pub fn fill(
    session: &mut ServerSession,
    text: &str,
    shape: &RequestShape,
    seed: u64,
) -> Result<(), Error> {
    fill_slots(session, text, shape, seed, None, &mut |_| ControlFlow::Continue(()))
}

/// The same for the keys of these slots only. `observe` sees the share of the range that is done,
/// and may end the fill.
///
/// # Errors
/// As of [`fill`], or `observe` ended it.
pub fn fill_slots(
    session: &mut ServerSession,
    text: &str,
    shape: &RequestShape,
    seed: u64,
    slots: Option<&SlotSet>,
    observe: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut template = Template::compile(text, shape)?;
    let (mut rng, argument) = (Rng::with_seed(seed), template.key_argument());
    let size = template.bytes_max().max(1);
    let batch = BATCH_COUNT.min((BATCH_BYTES_MAX / size).max(1) as u64);
    let (mut requests, mut count) = (Vec::new(), 0);
    for key in shape.first..=shape.last() {
        let request = template.draw_key(key, &mut rng);
        let is_owned = match (slots, &argument) {
            (Some(slots), Some(argument)) => slots.own(&request[argument.clone()]),
            _ => true,
        };
        if is_owned {
            template.append(&mut requests, &mut rng);
            count += 1;
        }
        if count < batch && key < shape.last() {
            continue;
        }
        match session.exchange("the fill", &requests, count * template.answer().replies) {
            // An earlier workload has made the same group of the stream.
            Err(Error::Refused { reply, .. }) if reply.starts_with("BUSYGROUP ") => {}
            other => drop(other?),
        }
        requests.clear();
        count = 0;
        let done = (key - shape.first) as f64 + 1.0;
        if observe(done / shape.keys as f64).is_break() {
            return Err(Error::Interrupted);
        }
    }
    Ok(())
}
