//! The next batch of requests of a load thread, made by writing a few digits.
//!
//! A batch is `pipeline` requests. With one template in the workload the batch is laid out once and
//! only its digits change; with two it is laid out again each time, which copies the requests.

use std::fmt;

use fastrand::Rng;

use super::replies::Answer;
use super::template::{Shape, Template};
use super::workload::Row;
use crate::Error;

/// How often a row that both reads and writes does either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    /// Parts of reading.
    pub reads: u32,
    /// Parts of writing.
    pub writes: u32,
}

impl Default for Ratio {
    fn default() -> Self {
        Ratio { reads: 1, writes: 1 }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.reads, self.writes)
    }
}

impl std::str::FromStr for Ratio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(':').and_then(|(reads, writes)| {
            Some(Ratio { reads: reads.parse().ok()?, writes: writes.parse().ok()? })
        });
        parts
            .filter(|ratio| ratio.reads.checked_add(ratio.writes).is_some_and(|sum| sum > 0))
            .ok_or_else(|| format!("'{text}' is no ratio of reads to writes; write 9:1"))
    }
}

/// The source of a load thread's requests.
#[derive(Debug)]
pub struct Batches {
    kind: Kind,
    rng: Rng,
    bytes: Vec<u8>,
    pipeline: usize,
}

#[derive(Debug)]
enum Kind {
    One(Template),
    /// Both have the same answer.
    Two {
        read: Template,
        write: Template,
        ratio: Ratio,
    },
}

impl Batches {
    /// Batches of `pipeline` requests of a workload.
    ///
    /// # Errors
    /// When a template cannot be compiled with this shape, or reading and writing are answered
    /// differently.
    pub fn new(
        row: &Row,
        ratio: Ratio,
        shape: &Shape,
        pipeline: usize,
        seed: u64,
    ) -> Result<Batches, Error> {
        let compile = |text: &str| Template::compile(text, shape);
        let kind = match (row.read.map(compile).transpose()?, row.write.map(compile).transpose()?) {
            (Some(read), Some(write)) if read.answer() == write.answer() => {
                Kind::Two { read, write, ratio }
            }
            (Some(_), Some(_)) => {
                let text = format!("{} mixes requests with different answers", row.name);
                return Err(Error::Usage(text));
            }
            (Some(only), None) | (None, Some(only)) => Kind::One(only),
            (None, None) => return Err(Error::Usage(format!("{} has no command", row.name))),
        };
        let mut bytes = Vec::new();
        if let Kind::One(template) = &kind {
            (0..pipeline).for_each(|_| template.append(&mut bytes));
        }
        Ok(Batches { kind, rng: Rng::with_seed(seed), bytes, pipeline })
    }

    /// What answers each of the requests.
    pub fn answer(&self) -> Answer {
        match &self.kind {
            Kind::One(template) | Kind::Two { read: template, .. } => template.answer(),
        }
    }

    /// The bytes of the next batch.
    #[inline]
    pub fn make_next(&mut self) -> &[u8] {
        match &self.kind {
            Kind::One(template) => {
                for request in self.bytes.chunks_exact_mut(template.request_bytes()) {
                    template.draw(request, &mut self.rng);
                }
            }
            Kind::Two { read, write, ratio } => {
                self.bytes.clear();
                for _ in 0..self.pipeline {
                    let reads = self.rng.u32(0..ratio.reads + ratio.writes) < ratio.reads;
                    let template = if reads { read } else { write };
                    let start = self.bytes.len();
                    template.append(&mut self.bytes);
                    template.draw(&mut self.bytes[start..], &mut self.rng);
                }
            }
        }
        &self.bytes
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::bench::workload;

    fn requests(row: &str, ratio: Ratio) -> (usize, usize) {
        let row = workload::find(row).unwrap();
        let mut batches = Batches::new(row, ratio, &Shape::default(), 16, 1).unwrap();
        let mut text = String::new();
        for _ in 0..100 {
            text.push_str(std::str::from_utf8(batches.make_next()).unwrap());
        }
        (text.matches("\r\nGET\r\n").count(), text.matches("\r\nSET\r\n").count())
    }

    #[test]
    fn batches_hold_the_pipeline_in_the_ratio() {
        assert_eq!(requests("get", Ratio::default()), (1600, 0));
        assert_eq!(requests("mixed", Ratio { reads: 1, writes: 0 }), (1600, 0));
        let (reads, writes) = requests("mixed", Ratio { reads: 9, writes: 1 });
        assert_eq!(reads + writes, 1600);
        assert!((100..220).contains(&writes), "{writes}");
    }

    #[test]
    fn ratios_parse() {
        assert_eq!("9:1".parse(), Ok(Ratio { reads: 9, writes: 1 }));
        assert_eq!(Ratio { reads: 9, writes: 1 }.to_string(), "9:1");
        for text in ["0:0", "9", "a:b", "-1:2", "4294967295:1"] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
    }
}
