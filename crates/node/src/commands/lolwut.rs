//! LOLWUT (<https://redis.io/docs/latest/commands/lolwut/>): a piece of cloth, different each time.
//!
//! ```text
//!   threading   warp thread -> shaft
//!   treadling   weft thread -> treadle
//!   tie-up      treadle -> shafts that it lifts: there the warp is visible, elsewhere the weft
//! ```

use base::number::parse_i64;
use base::random::Random;
use command::{Argument, Flags, Group, Row, Shape, Spec};
use engine::Error;
use resp::{Args, Reply};

use crate::execution::node_cx::{NodeCx, NodeHandler};

/// Default number of threads across.
const COLUMNS: usize = 64;
/// The most threads across.
const COLUMNS_MAX: usize = 256;
/// Default number of threads down.
const ROWS_DOWN: usize = 16;
/// The most threads down.
const ROWS_MAX: usize = 128;
/// Number of shafts, and of treadles.
const SHAFTS: usize = 4;
/// Versions of the command that draw; others only return the server's version.
const DRAWING_VERSIONS: std::ops::RangeInclusive<i64> = 5..=8;

/// The command.
pub const ROWS: &[Row<NodeHandler>] = &[Row::new(
    Spec::new("lolwut", -1, Group::Server, "5.0.0")
        .summary("Returns a picture of woven threads and the server's version.")
        .complexity("")
        .flags(Flags::READONLY.with(Flags::FAST))
        .arguments(&[Argument::new("version", Shape::Integer).after("VERSION").optional()]),
    lolwut,
)];

fn lolwut(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let mut version = *DRAWING_VERSIONS.end();
    if args.len() > 2 && args.take_word("version") {
        version = number(args.next().unwrap_or_default())?;
    } else {
        // Without a version, further arguments are ignored.
        args.seek(args.len());
    }
    let mut text = String::new();
    if DRAWING_VERSIONS.contains(&version) {
        let columns = size(args, COLUMNS, COLUMNS_MAX)?;
        let rows = size(args, ROWS_DOWN, ROWS_MAX)?;
        let mut random = Random::new(cx.worker.random.next_u64());
        text = weave(&mut random, columns, rows);
        text.push_str("\nA weft runs across the warp. ");
    }
    text.push_str(&format!("Weft ver. {}\n", crate::version::VERSION));
    reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn number(arg: &[u8]) -> Result<i64, Error> {
    parse_i64(arg).ok_or(Error::NotInteger)
}

/// The next argument as a size of the cloth, clamped to its range.
fn size(args: &mut Args<'_>, default: usize, max: usize) -> Result<usize, Error> {
    let Some(arg) = args.next() else { return Ok(default) };
    Ok(usize::try_from(number(arg)?).unwrap_or(0).clamp(1, max))
}

fn weave(random: &mut Random, columns: usize, rows: usize) -> String {
    let mut below = |n: usize| random.below(n as u64) as usize;
    // Which shafts each treadle lifts: one to three of the four, in twill order or shuffled.
    let lifted = below(SHAFTS - 1) + 1;
    let shuffled = below(2) == 1;
    let tie_up: [usize; SHAFTS] =
        std::array::from_fn(|treadle| if shuffled { below(SHAFTS) } else { treadle });
    let (turn_across, turn_down) = (below(12) + SHAFTS, below(8) + SHAFTS);
    let lifts = |shaft: usize, treadle: usize| (shaft + tie_up[treadle]) % SHAFTS < lifted;
    let mut text = String::with_capacity((columns * 3 + 1) * rows);
    for row in 0..rows {
        let treadle = zigzag(row, turn_down) % SHAFTS;
        for column in 0..columns {
            let shaft = zigzag(column, turn_across) % SHAFTS;
            text.push(if lifts(shaft, treadle) { '█' } else { '░' });
        }
        text.push('\n');
    }
    text
}

/// Counts up to `turn`, back to 0, up again, and so on: turns a twill into a herringbone.
fn zigzag(at: usize, turn: usize) -> usize {
    let step = at % (2 * turn);
    step.min(2 * turn - step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cloth_has_the_given_size_and_both_threads() {
        for seed in 0..200 {
            let cloth = weave(&mut Random::new(seed), 20, 16);
            let rows: Vec<_> = cloth.lines().collect();
            assert_eq!(rows.len(), 16);
            assert!(rows.iter().all(|row| row.chars().count() == 20));
            assert!(cloth.contains('█') && cloth.contains('░'), "seed {seed}:\n{cloth}");
        }
    }
}
