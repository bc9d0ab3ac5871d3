//! ZSCAN: the members of a sorted set with their scores, page by page.

use base::number::DoubleText;
use resp::{Args, Reply};
use store::{Digits, SortedSetRef, SortedSetValue};

use super::{reply_member, spec};
use crate::cursor::{Scanned, reply_page, scanning};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::Row;

pub(super) const ZSCAN: Row<Handler> = Row::new(
    scanning(spec("zscan", -3, "2.8.0"))
        .summary("Iterates over the members and scores of a sorted set.")
        .complexity("O(1) for a call of fixed COUNT, O(N) for a whole scan of N members."),
    zscan,
);

fn zscan(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply_page::<SortedSetValue>(cx, args, reply, Scanned::Members, |set, cursor, wanted, reply| {
        let mut found = 0;
        let is_packed = matches!(set, SortedSetRef::Packed(_));
        let next = set.scan(cursor, wanted.count, &mut |pair| {
            if wanted.pattern.matches(pair.member.text(&mut Digits::default())) {
                reply_member(reply, pair.member);
                // As text also in RESP3, as in Redis.
                match is_packed {
                    true => reply.bulk(DoubleText::of(pair.score()).as_bytes()),
                    false => reply.bulk(seventeen_digits(pair.score()).as_bytes()),
                }
                found += 2;
            }
        });
        (next, found)
    })
}

/// A score with up to 17 significant digits, as C's `%.17g` prints it. Redis does this only for
/// ZSCAN of a set that is not packed.
fn seventeen_digits(score: f64) -> String {
    // Most scores are integers, which are printed as such if they have at most this many digits.
    if score.trunc() == score && score.abs() < INTEGERS_END && score.to_bits() != MINUS_ZERO {
        return (score as i64).to_string();
    }
    if !score.is_finite() {
        return String::from_utf8_lossy(DoubleText::of(score).as_bytes()).into_owned();
    }
    let scientific = format!("{score:.*e}", DIGITS - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let strip = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match usize::try_from(DIGITS as i32 - 1 - exponent) {
        Ok(decimals) if exponent >= -4 => strip(&format!("{score:.decimals$}")),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", strip(digits), exponent.abs())
        }
    }
}

/// The significant digits of a score that is not packed.
const DIGITS: usize = 17;
/// Integers below this have fewer digits and are exact.
const INTEGERS_END: f64 = 1e15;
const MINUS_ZERO: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_have_17_digits_as_c_prints_them() {
        let cases = [
            (0.1, "0.10000000000000001"),
            (370_370_367.370_370_4, "370370367.37037039"),
            (18446744073709551616.0, "1.8446744073709552e+19"),
            (1e21, "1e+21"),
            (-1e-5, "-1.0000000000000001e-05"),
            (0.0001, "0.0001"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (-0.0, "-0"),
            (5.0, "5"),
            (f64::NEG_INFINITY, "-inf"),
            (1e308, "1e+308"),
        ];
        for (score, text) in cases {
            assert_eq!(seventeen_digits(score), text);
        }
    }
}
