//! A recurring failure, which the log reports from time to time.

/// Between two lines about the same failure.
const PAUSE_MS: i64 = 30_000;

/// The failure that was reported last, and when.
#[derive(Debug, Default)]
pub struct Complaint(Option<(String, i64)>);

impl Complaint {
    /// Whether to report a failure: it is a new one, or the last line was long ago. The caller
    /// reports it then.
    pub fn is_due(&mut self, failure: &str, now_ms: i64) -> bool {
        let last = self.0.as_ref().filter(|(last, _)| last == failure);
        let is_due = last.is_none_or(|(_, reported_ms)| now_ms - reported_ms > PAUSE_MS);
        if is_due {
            self.0 = Some((failure.to_owned(), now_ms));
        }
        is_due
    }

    /// Whether a failure was reported lately.
    pub fn is_fresh(&self, now_ms: i64) -> bool {
        self.0.as_ref().is_some_and(|(_, reported_ms)| now_ms - reported_ms <= PAUSE_MS)
    }

    /// The failure is over. Returns whether it was reported.
    pub fn end(&mut self) -> bool {
        self.0.take().is_some()
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
        assert!(complaint.is_due("broken", PAUSE_MS + 2));
        assert!(complaint.end() && complaint.is_due("broken", PAUSE_MS + 3));
    }
}
