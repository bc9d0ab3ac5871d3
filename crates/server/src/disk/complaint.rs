//! A recurring failure, which the log reports from time to time.

/// Between two lines about the same failure.
const PAUSE_MS: i64 = 30_000;
/// Between two lines about different ones, and after one that was over in between: a disk that is
/// almost full takes some writes and refuses others.
const PAUSE_OF_OTHERS_MS: i64 = 5000;

/// The failure that was reported last.
#[derive(Debug, Default)]
pub struct Complaint {
    last: Option<ReportedFailure>,
    /// It lasts.
    is_open: bool,
}

#[derive(Debug)]
struct ReportedFailure {
    text: String,
    at_ms: i64,
}

impl Complaint {
    /// Whether to report a failure: it is the first, or the last line was long ago. The caller
    /// reports it then.
    pub fn is_due(&mut self, failure: &str, now_ms: i64) -> bool {
        let is_due = self.last.as_ref().is_none_or(|last| {
            let is_same = self.is_open && last.text == failure;
            let pause_ms = if is_same { PAUSE_MS } else { PAUSE_OF_OTHERS_MS };
            now_ms - last.at_ms > pause_ms
        });
        if is_due {
            self.last = Some(ReportedFailure { text: failure.to_owned(), at_ms: now_ms });
            self.is_open = true;
        }
        is_due
    }

    /// Whether a failure that lasts was reported lately.
    pub fn is_fresh(&self, now_ms: i64) -> bool {
        let last = self.last.as_ref().filter(|_| self.is_open);
        last.is_some_and(|last| now_ms - last.at_ms <= PAUSE_MS)
    }

    /// The failure is over. Returns whether it was reported.
    pub fn end(&mut self) -> bool {
        std::mem::take(&mut self.is_open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_reported_once_in_half_a_minute() {
        let mut complaint = Complaint::default();
        assert!(!complaint.end());
        assert!(complaint.is_due("full", 0));
        assert!(!complaint.is_due("full", PAUSE_MS) && complaint.is_fresh(PAUSE_MS));
        assert!(!complaint.is_fresh(PAUSE_MS + 1) && complaint.is_due("full", PAUSE_MS + 1));
        assert!(complaint.end() && !complaint.end() && !complaint.is_fresh(PAUSE_MS + 1));
    }

    #[test]
    fn failures_that_alternate_are_not_reported_each_time() {
        let mut complaint = Complaint::default();
        let mut lines = Vec::new();
        // A try in a tenth of a second: of writing, of syncing, and one that succeeds.
        for at_ms in (0..60_000).step_by(100) {
            match at_ms / 100 % 3 {
                0 if complaint.is_due("write", at_ms) => lines.push(at_ms),
                1 if complaint.is_due("sync", at_ms) => lines.push(at_ms),
                2 if complaint.end() => {}
                _ => {}
            }
        }
        assert!(lines.len() <= 12, "{lines:?}");
        assert!(lines.windows(2).all(|two| two[1] - two[0] >= PAUSE_OF_OTHERS_MS), "{lines:?}");
    }
}
