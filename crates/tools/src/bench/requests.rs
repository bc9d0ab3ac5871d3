//! Counts complete RESP requests in a byte stream and distinguishes GET from the rest, for the
//! floor.
//!
//! A request is an array of bulk strings. Header lines are read digit by digit, bodies are skipped
//! by length, and only a command name of three bytes is read. The state is a few words, so the
//! counter resumes at any split. Inline commands are refused.

/// A complete request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloorRequest {
    /// `GET`, in any letter case.
    Get,
    /// Any other command.
    Other,
}

/// The stream is not an array of bulk strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotRequest;

/// A declared length or count beyond this is refused.
const COUNT_MAX: usize = 1 << 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestPosition {
    /// Before the `*` of a request.
    Start,
    /// Inside the number of arguments.
    Arguments,
    /// Before the `$` of an argument.
    Marker,
    /// Inside the length of an argument.
    Length,
    /// Inside the three bytes of a name that may be GET, and how many of them have matched.
    Name { seen: usize },
    /// Inside a body of this many bytes, line end included.
    Body(usize),
}

/// The resumable counter of one connection.
#[derive(Debug)]
pub struct RequestCounter {
    state: RequestPosition,
    /// The number read so far.
    number: usize,
    /// Arguments still due, the current one included.
    due: usize,
    /// The current argument is the command name.
    name: bool,
    get: bool,
}

impl Default for RequestCounter {
    fn default() -> Self {
        RequestCounter { state: RequestPosition::Start, number: 0, due: 0, name: false, get: false }
    }
}

impl RequestCounter {
    /// Takes the next bytes of the stream and calls `complete` for every request that ends in them.
    ///
    /// # Errors
    /// The bytes are not an array of bulk strings.
    #[inline]
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut complete: impl FnMut(FloorRequest),
    ) -> Result<(), NotRequest> {
        let mut at = 0;
        while at < bytes.len() {
            match self.state {
                RequestPosition::Start | RequestPosition::Marker => {
                    self.marker(bytes[at])?;
                    at += 1;
                }
                RequestPosition::Arguments | RequestPosition::Length => {
                    while at < bytes.len() {
                        let byte = bytes[at];
                        at += 1;
                        if byte.is_ascii_digit() && self.number < COUNT_MAX {
                            self.number = self.number * 10 + usize::from(byte - b'0');
                        } else if byte == b'\n' {
                            self.numbered();
                            break;
                        } else if byte != b'\r' {
                            return Err(NotRequest);
                        }
                    }
                }
                RequestPosition::Name { seen } => {
                    self.get &= bytes[at].eq_ignore_ascii_case(&b"GET"[seen]);
                    self.state = if seen < 2 {
                        RequestPosition::Name { seen: seen + 1 }
                    } else {
                        RequestPosition::Body(2)
                    };
                    at += 1;
                }
                RequestPosition::Body(left) => {
                    let here = left.min(bytes.len() - at);
                    at += here;
                    if here == left {
                        self.argument_done(&mut complete);
                    } else {
                        self.state = RequestPosition::Body(left - here);
                    }
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn marker(&mut self, byte: u8) -> Result<(), NotRequest> {
        self.number = 0;
        self.state = match (self.state, byte) {
            (RequestPosition::Start, b'*') => RequestPosition::Arguments,
            (RequestPosition::Marker, b'$') => RequestPosition::Length,
            _ => return Err(NotRequest),
        };
        Ok(())
    }

    /// A header line has ended.
    #[inline]
    fn numbered(&mut self) {
        if self.state == RequestPosition::Arguments {
            self.due = self.number;
            self.name = true;
            self.get = false;
            // An empty array is no request: servers skip it without a reply.
            self.state =
                if self.due == 0 { RequestPosition::Start } else { RequestPosition::Marker };
        } else if self.name && self.number == 3 {
            self.get = true;
            self.state = RequestPosition::Name { seen: 0 };
        } else {
            self.state = RequestPosition::Body(self.number + 2);
        }
    }

    #[inline]
    fn argument_done(&mut self, complete: &mut impl FnMut(FloorRequest)) {
        self.name = false;
        self.due -= 1;
        if self.due > 0 {
            self.state = RequestPosition::Marker;
            return;
        }
        self.state = RequestPosition::Start;
        complete(if self.get { FloorRequest::Get } else { FloorRequest::Other });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b"*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000001\r\n*1\r\n$4\r\nPING\r\n\
        *0\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\na\r\nbc\r\n*2\r\n$3\r\nget\r\n$0\r\n\r\n\
        *2\r\n$4\r\nGETS\r\n$3\r\nGET\r\n";
    const EXPECTED: [FloorRequest; 5] = [
        FloorRequest::Get,
        FloorRequest::Other,
        FloorRequest::Other,
        FloorRequest::Get,
        FloorRequest::Other,
    ];

    #[test]
    fn resumes_at_every_pair_of_splits() {
        for first in 0..=STREAM.len() {
            for second in first..=STREAM.len() {
                let (mut counter, mut found) = (RequestCounter::default(), Vec::new());
                for part in [&STREAM[..first], &STREAM[first..second], &STREAM[second..]] {
                    assert_eq!(counter.feed(part, |request| found.push(request)), Ok(()));
                }
                assert_eq!(found, EXPECTED, "split at {first} and {second}");
            }
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        for stream in [&b"PING\r\n"[..], b"*1\r\nPING", b"*-1\r\n", b"*1\r\n$99999999999999\r\n"] {
            assert_eq!(RequestCounter::default().feed(stream, |_| {}), Err(NotRequest));
        }
    }
}
