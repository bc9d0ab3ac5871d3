//! Payloads of DUMP in both directions: each server reads what the other writes, and then both hold
//! the same data.
//!
//! A key is restored under another name, compared and deleted. The payloads are not compared: hash
//! tables have no order, and versions differ.

use test_support::Value;

use crate::compare::same;
use crate::found::{Lost, Unlike};
use crate::look::{about, contents, look};
use crate::pair::Pair;
use crate::{ConnectionName, Request, request, rules};

/// The prefix of the names of restored keys.
const RESTORED: &[u8] = b"restored:";

/// The first value type that only Redis has and Valkey does not read: hashes with fields that
/// expire.
const FOREIGN_TYPE_MIN: u8 = 22;

/// Exchanges the values of keys of the selected database. `types` are the replies of TYPE.
///
/// # Errors
/// When a server does not answer.
pub(crate) fn compare(
    pair: &mut Pair<'_>,
    database: &'static str,
    keys: &[Vec<u8>],
    types: &[Value],
) -> Result<Option<Unlike>, Lost> {
    let (ours, theirs) = pair.both(&about(keys, &["DUMP"]))?;
    let of_subject = restores(keys, &theirs);
    let of_reference = restores(keys, &ours);
    let (subject, reference) = pair.each(ConnectionName::Observer, &of_subject, &of_reference)?;
    let mut read = Vec::new();
    let mut unlike = None;
    for (at, replies) in subject.into_iter().zip(reference).enumerate() {
        match replies {
            (subject, reference) if !subject.is_error() && !reference.is_error() => {
                read.push((restored(&keys[at]), &types[at]));
            }
            (subject, _) if !subject.is_error() && is_foreign(pair, &of_reference[at]) => {}
            (subject, reference) => {
                let request = of_subject[at].clone();
                unlike = Some(Unlike { request, database, subject, reference });
            }
        }
    }
    let names: Vec<Vec<u8>> = read.iter().map(|(name, _)| name.clone()).collect();
    if unlike.is_none() {
        let asked: Vec<Request> = read.iter().flat_map(|(key, of)| contents(key, of)).collect();
        let (replies, found) = look(pair, database, asked.clone())?;
        unlike = found;
        if unlike.is_none() {
            unlike = with_originals(pair, database, &asked, replies)?;
        }
        if unlike.is_none() {
            unlike = look(pair, database, about(&names, &["OBJECT", "ENCODING"]))?.1;
        }
    }
    let mut delete = request(&["DEL"]);
    delete.extend(keys.iter().map(|key| restored(key)));
    pair.both(&[delete])?;
    Ok(unlike)
}

/// Compares the keys that the subject has restored with its own keys.
fn with_originals(
    pair: &mut Pair<'_>,
    database: &'static str,
    asked: &[Request],
    replies: Vec<Value>,
) -> Result<Option<Unlike>, Lost> {
    let originals: Vec<Request> = asked.iter().map(original).collect();
    let (own, _) = look(pair, database, originals)?;
    let mut all = asked.iter().zip(replies.into_iter().zip(own));
    let unlike = all.find(|(request, (read, own))| !same(rules::compare(request), read, own));
    Ok(unlike.map(|(request, (subject, reference))| Unlike {
        request: request.clone(),
        database,
        subject,
        reference,
    }))
}

fn restores(keys: &[Vec<u8>], payloads: &[Value]) -> Vec<Request> {
    let restore = |(key, payload): (&Vec<u8>, &Value)| {
        let payload = payload.bytes().unwrap_or_default().to_vec();
        vec![b"RESTORE".to_vec(), restored(key), b"0".to_vec(), payload, b"REPLACE".to_vec()]
    };
    keys.iter().zip(payloads).map(restore).collect()
}

fn restored(key: &[u8]) -> Vec<u8> {
    [RESTORED, key].concat()
}

/// The same request about the original of a restored key.
fn original(request: &Request) -> Request {
    let word = |word: &Vec<u8>| word.strip_prefix(RESTORED).unwrap_or(word).to_vec();
    request.iter().map(word).collect()
}

/// Whether the reference cannot read the payload of a request.
fn is_foreign(pair: &Pair<'_>, restore: &Request) -> bool {
    pair.is_valkey && restore[3].first().is_some_and(|number| *number >= FOREIGN_TYPE_MIN)
}
