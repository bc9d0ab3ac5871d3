//! All data of two servers, read as a client can: keys, types, encodings, times of expiry, and the
//! value of each key.

use test_support::Value;

use crate::found::{Lost, Unlike};
use crate::look::{about, contents, look};
use crate::pair::Pair;
use crate::{Request, exchange, request};

/// The databases that requests use.
const DATABASES: &[&str] = &["0", "1"];

/// Finds the first difference in the data. Leaves both servers in database 0.
///
/// # Errors
/// When a server does not reply.
pub fn compare(pair: &mut Pair<'_>, hash_field_times: bool) -> Result<Option<Unlike>, Lost> {
    let mut found = None;
    for database in DATABASES {
        pair.both(&[request(&["SELECT", database])])?;
        found = compare_database(pair, database, hash_field_times)?;
        if found.is_some() {
            break;
        }
    }
    pair.both(&[request(&["SELECT", "0"])])?;
    Ok(found)
}

fn compare_database(
    pair: &mut Pair<'_>,
    database: &'static str,
    hash_field_times: bool,
) -> Result<Option<Unlike>, Lost> {
    let (keys, unlike) = look(pair, database, vec![request(&["KEYS", "*"])])?;
    if unlike.is_some() {
        return Ok(unlike);
    }
    let mut keys: Vec<Vec<u8>> = texts(keys.first());
    keys.sort();
    let (types, unlike) = look(pair, database, about(&keys, &["TYPE"]))?;
    if unlike.is_some() {
        return Ok(unlike);
    }
    let contents: Vec<Request> =
        keys.iter().zip(&types).flat_map(|(key, of_type)| contents(key, of_type)).collect();
    // Values first: their differences are closer to the cause than an encoding.
    let (replies, unlike) = look(pair, database, contents.clone())?;
    if unlike.is_some() {
        return Ok(unlike);
    }
    let mut rest = about(&keys, &["OBJECT", "ENCODING"]);
    rest.extend(about(&keys, &["PEXPIRETIME"]));
    if hash_field_times {
        let hashes = contents.iter().zip(&replies).filter(|(asked, _)| asked[0] == b"HGETALL");
        rest.extend(hashes.map(|(asked, reply)| field_times(&asked[1], reply)));
    }
    let unlike = look(pair, database, rest)?.1;
    match pair.exchanges && unlike.is_none() && !keys.is_empty() {
        true => exchange::compare(pair, database, &keys, &types),
        false => Ok(unlike),
    }
}

/// Asks for the time of expiry of each field of a hash.
fn field_times(key: &[u8], pairs: &Value) -> Request {
    let fields: Vec<Vec<u8>> = texts(Some(pairs)).into_iter().step_by(2).collect();
    let mut request = request(&["HPEXPIRETIME"]);
    request.push(key.to_vec());
    request.push(b"FIELDS".to_vec());
    request.push(fields.len().to_string().into_bytes());
    request.extend(fields);
    request
}

fn texts(reply: Option<&Value>) -> Vec<Vec<u8>> {
    let elements = reply.map(Value::elements).unwrap_or_default();
    elements.iter().filter_map(Value::bytes).map(<[u8]>::to_vec).collect()
}
