//! Makes the next batch of requests of a load thread, by writing a few digits.
//!
//! A batch is `pipeline` requests. If all come from one template of fixed length, the batch is laid
//! out once and only its digits change; otherwise the requests are copied together each time. For a
//! node of a cluster, keys are drawn until one belongs to it, so that its keys keep their relative
//! frequencies.

use fastrand::Rng;

use super::keys::{KeySource, Law, ThreadIndex};
use super::spec::{LoadCommand, LoadSpec};
use super::template::Template;
use super::workload::Workload;
use crate::Error;
use crate::client::cluster::SlotSet;
use crate::client::replies::ExpectedReplies;

/// After this many draws, no key of the range belongs to the node.
const OWN_KEY_DRAWS_MAX: u32 = 1_000_000;

/// The longest batch; each load thread has one for each node.
const BATCH_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// The source of a load thread's requests.
#[derive(Debug)]
pub struct Batches {
    /// Requests with the sum of the weights up to each.
    requests: Vec<(u32, WeightedRequest)>,
    weights: u32,
    /// The length of a request, if there is one template of fixed length, for any node.
    fixed_bytes: Option<usize>,
    slots: Option<SlotSet>,
    rng: Rng,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct WeightedRequest {
    template: Template,
    keys: KeySource,
}

impl Batches {
    /// The batches of one load thread for the owner of these slots.
    pub fn new(
        row: &Workload,
        load: &LoadSpec,
        thread: ThreadIndex,
        slots: Option<&SlotSet>,
    ) -> Result<Batches, Error> {
        let (mut requests, mut weights) = (Vec::new(), 0u32);
        for (template, weight, law) in templates(row, load)? {
            weights = weights
                .checked_add(weight)
                .ok_or_else(|| Error::Usage("the weights of the commands are too large".into()))?;
            let keys = KeySource::new(law, &load.shape, thread)?;
            requests.push((weights, WeightedRequest { template, keys }));
        }
        let answers: Vec<ExpectedReplies> =
            requests.iter().map(|(_, r)| r.template.answer()).collect();
        if answers.windows(2).any(|pair| pair[0] != pair[1]) {
            let text = format!("{} mixes requests with different answers", row.name);
            return Err(Error::Usage(text));
        }
        if weights == 0 {
            return Err(Error::Usage("no command has a --command-ratio above 0".into()));
        }
        let longest = requests.iter().map(|(_, request)| request.template.bytes_max()).max();
        let longest = longest.unwrap_or(0);
        if longest.saturating_mul(load.pipeline) > BATCH_BYTES_MAX {
            let text = format!(
                "{} requests of {longest} bytes are more than the 1 GB that is sent at once: give \
                 a smaller --pipeline",
                load.pipeline
            );
            return Err(Error::Usage(text));
        }
        let fixed_bytes = match &requests[..] {
            [(_, request)] if slots.is_none() => request.template.fixed_bytes(),
            _ => None,
        };
        let mut bytes = Vec::new();
        if fixed_bytes.is_some() {
            (0..load.pipeline).for_each(|_| requests[0].1.template.lay_out(&mut bytes));
        }
        let rng = Rng::with_seed(load.seed.wrapping_add(thread.index as u64));
        let slots = slots.cloned();
        let mut batches = Batches { requests, weights, fixed_bytes, slots, rng, bytes };
        batches.check_keys()?;
        Ok(batches)
    }

    /// Whether each request can have a key that belongs to the owner of the slots.
    fn check_keys(&mut self) -> Result<(), Error> {
        let Some(slots) = &self.slots else { return Ok(()) };
        for (_, WeightedRequest { template, keys }) in &self.requests {
            // Copies, so that the load begins with the same draws.
            let (mut template, mut keys) = (template.clone(), keys.clone());
            let mut rng = self.rng.clone();
            let Some(argument) = template.key_argument() else { continue };
            let mut draw =
                |_| slots.own(&template.draw_next(&mut keys, &mut rng)[argument.clone()]);
            if !(0..OWN_KEY_DRAWS_MAX).any(&mut draw) {
                let text = "a node of the cluster owns no key of the range: use more --keys";
                return Err(Error::Usage(text.into()));
            }
        }
        Ok(())
    }

    /// The replies to each of the requests.
    pub fn answer(&self) -> ExpectedReplies {
        self.requests
            .first()
            .map_or(ExpectedReplies::ONE_REPLY, |(_, request)| request.template.answer())
    }

    /// The bytes of the next batch, of this many requests; the pipeline is the most.
    #[inline]
    pub fn make_next(&mut self, requests: usize) -> &[u8] {
        if let (Some(bytes), [(_, WeightedRequest { template, keys })]) =
            (self.fixed_bytes, &mut self.requests[..])
        {
            let end = self.bytes.len().min(requests.saturating_mul(bytes));
            for request in self.bytes[..end].chunks_exact_mut(bytes) {
                template.draw(request, keys, &mut self.rng);
            }
            return &self.bytes[..end];
        }
        self.bytes.clear();
        for _ in 0..requests {
            let at = if self.weights > 1 { self.rng.u32(0..self.weights) } else { 0 };
            let next = self.requests.iter_mut().find(|(weights, _)| at < *weights);
            let Some((_, WeightedRequest { template, keys })) = next else { continue };
            let argument = template.key_argument();
            loop {
                let request = template.draw_next(keys, &mut self.rng);
                match (&self.slots, &argument) {
                    (Some(slots), Some(argument)) if !slots.own(&request[argument.clone()]) => {}
                    _ => break,
                }
            }
            template.append(&mut self.bytes, &mut self.rng);
        }
        &self.bytes
    }
}

/// The templates of a load: the commands of the command line, or else those of the workload.
fn templates(row: &Workload, load: &LoadSpec) -> Result<Vec<(Template, u32, Law)>, Error> {
    let LoadSpec { commands, shape, ratio, patterns, .. } = load;
    if !commands.is_empty() {
        let of_words = |command: &LoadCommand| {
            let template = Template::of_words(&command.words, shape)?;
            Ok((template, command.weight, command.law))
        };
        return commands.iter().map(of_words).collect();
    }
    let (write_weight, read_weight) = match row.is_mixed() {
        true => (ratio.writes, ratio.reads),
        false => (1, 1),
    };
    let kinds =
        [(row.read, read_weight, patterns.reads), (row.write, write_weight, patterns.writes)];
    let kinds = kinds.into_iter().filter_map(|(text, weight, law)| Some((text?, weight, law)));
    kinds.map(|(text, weight, law)| Ok((Template::compile(text, shape)?, weight, law))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::load::keys::KeyPatterns;
    use crate::load::shape::{RequestShape, ValueSizes};
    use crate::load::workload::Ratio;
    use crate::load::workload::names;

    fn load() -> LoadSpec {
        LoadSpec { pipeline: 16, ..LoadSpec::default() }
    }

    /// 100 batches.
    fn text(row: &str, load: &LoadSpec) -> String {
        let row = names::find(row).unwrap();
        let mut batches = Batches::new(row, load, ThreadIndex::ONLY, None).unwrap();
        (0..100).map(|_| String::from_utf8(batches.make_next(16).to_vec()).unwrap()).collect()
    }

    fn requests(row: &str, ratio: Ratio) -> (usize, usize) {
        let text = text(row, &LoadSpec { ratio, ..load() });
        (text.matches("\r\nGET\r\n").count(), text.matches("\r\nSET\r\n").count())
    }

    #[test]
    fn batches_hold_the_pipeline_in_the_ratio() {
        assert_eq!(requests("get", Ratio::default()), (1600, 0));
        assert_eq!(requests("mixed", Ratio { reads: 1, writes: 0 }), (1600, 0));
        assert_eq!(requests("mixed", Ratio { reads: 0, writes: 3 }), (0, 1600));
        let (reads, writes) = requests("mixed", Ratio { reads: 9, writes: 1 });
        assert_eq!(reads + writes, 1600);
        assert!((100..220).contains(&writes), "{writes}");
    }

    #[test]
    fn commands_have_weights_and_their_own_key_laws() {
        let command = |words: &str, weight, law| {
            let words = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            LoadCommand { words, weight, law }
        };
        let commands = vec![
            command("SETEX __key__ 10 __data__", 3, Law::Sequential),
            command("PING", 1, Law::Uniform),
        ];
        let load = LoadSpec { commands, ..load() };
        let text = text("get", &load);
        let count = text.matches("SETEX").count();
        assert_eq!(count + text.matches("PING").count(), 1600);
        assert!((1100..1300).contains(&count), "{count}");
        for index in 0..count {
            assert!(text.contains(&format!("key:{index:012}\r\n")), "{index}");
        }
        assert!(!text.contains(&format!("key:{count:012}\r\n")));
    }

    #[test]
    fn writes_and_reads_have_their_own_patterns() {
        let patterns = KeyPatterns { writes: Law::Sequential, reads: Law::Zipf { exponent: 9.0 } };
        let text = text("mixed", &LoadSpec { patterns, ..load() });
        let keys = |name: &str| {
            let name = format!("${}\r\n{name}\r\n$16\r\n", name.len());
            text.split(&*name).skip(1).map(|rest| rest[4..16].to_owned()).collect::<Vec<_>>()
        };
        let (written, read) = (keys("SET"), keys("GET"));
        let in_order = (0..written.len()).map(|index| format!("{index:012}"));
        assert!(written.iter().cloned().eq(in_order));
        let first = read.iter().filter(|key| key.parse::<u64>() == Ok(0)).count();
        assert!(first * 100 > read.len() * 98, "{first} of {}", read.len());
    }

    #[test]
    fn requests_of_any_length_follow_one_another() {
        let sizes = Some(ValueSizes::range("1-100").unwrap());
        let shape = RequestShape { sizes, ..RequestShape::default() };
        let text = text("set", &LoadSpec { shape, ..load() });
        assert_eq!(text.matches("*3\r\n$3\r\nSET\r\n$16\r\nkey:").count(), 1600);
        assert_eq!(text.matches("\r\n").count(), 1600 * 7);
    }

    #[test]
    fn a_batch_has_a_limit_and_may_be_cut_short() {
        let made = |pipeline| {
            let load = LoadSpec { pipeline, ..LoadSpec::default() };
            Batches::new(names::find("get").unwrap(), &load, ThreadIndex::ONLY, None)
        };
        for pipeline in [usize::MAX, 1_000_000_000] {
            assert!(made(pipeline).unwrap_err().to_string().contains("1 GB"), "{pipeline}");
        }
        let mut batches = made(16).unwrap();
        let mut count = |requests| batches.make_next(requests).split(|b| *b == b'*').count() - 1;
        assert_eq!([count(16), count(3), count(16), count(100)], [16, 3, 16, 16]);
    }
}
