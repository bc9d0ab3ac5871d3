//! Writes the fields of a map and counts them, for replies whose number of fields varies.

use resp::{DeferredLength, Reply};

/// A map whose length is written when it ends.
pub(super) struct MapWriter<'a, 'b> {
    reply: &'a mut Reply<'b>,
    start: DeferredLength,
    len: usize,
}

impl<'a, 'b> MapWriter<'a, 'b> {
    pub(super) fn begin(reply: &'a mut Reply<'b>) -> Self {
        let start = reply.map_deferred();
        Self { reply, start, len: 0 }
    }

    /// Begins a field, whose value is written next.
    pub(super) fn field(&mut self, name: &str) -> &mut Reply<'b> {
        self.len += 1;
        self.reply.bulk(name.as_bytes());
        self.reply
    }

    pub(super) fn number(&mut self, name: &str, value: impl TryInto<i64>) {
        self.field(name).int(value.try_into().unwrap_or(i64::MAX));
    }

    pub(super) fn end(self) {
        self.reply.finish(self.start, self.len);
    }
}
