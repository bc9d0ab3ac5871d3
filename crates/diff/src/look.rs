//! Requests that read data, and the first reply in which two servers differ.

use test_support::Value;

use crate::compare::same;
use crate::found::{Lost, Unlike};
use crate::pair::Pair;
use crate::{Request, request, rules};

/// The subject's replies, and the first that differs from the reference's.
pub(crate) fn look(
    pair: &mut Pair<'_>,
    database: &'static str,
    requests: Vec<Request>,
) -> Result<(Vec<Value>, Option<Unlike>), Lost> {
    let (subject, reference) = pair.both(&requests)?;
    let unlike = requests.iter().zip(subject.iter().zip(&reference)).find(|(request, (a, b))| {
        !same(rules::compare(request), a, b) && rules::explained(request, a, b).is_none()
    });
    let unlike = unlike.map(|(request, (subject, reference))| Unlike {
        request: request.clone(),
        database,
        subject: subject.clone(),
        reference: reference.clone(),
    });
    Ok((subject, unlike))
}

pub(crate) fn about(keys: &[Vec<u8>], words: &[&str]) -> Vec<Request> {
    let of_key = |key: &Vec<u8>| {
        let mut request = request(words);
        request.push(key.clone());
        request
    };
    keys.iter().map(of_key).collect()
}

/// The requests that read the whole value of a key.
pub(crate) fn contents(key: &[u8], of_type: &Value) -> Vec<Request> {
    let asked: &[(&str, &[&str])] = match of_type.bytes().unwrap_or_default() {
        b"string" => &[("GET", &[])],
        b"list" => &[("LRANGE", &["0", "-1"])],
        b"set" => &[("SMEMBERS", &[])],
        b"hash" => &[("HGETALL", &[])],
        b"zset" => &[("ZRANGE", &["0", "-1", "WITHSCORES"])],
        b"stream" => &[("XRANGE", &["-", "+"]), ("XINFO STREAM", &["FULL", "COUNT", "0"])],
        _ => &[],
    };
    let build = |(name, rest): &(&str, &[&str])| {
        let mut words: Request = name.split(' ').map(Into::into).collect();
        words.push(key.to_vec());
        words.extend(rest.iter().map(|word| word.as_bytes().to_vec()));
        words
    };
    asked.iter().map(build).collect()
}
