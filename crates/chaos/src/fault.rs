//! Faults that are planted between the server and a client, so that the checks are checked.

/// A fault that the actors' checks must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An increment is sent twice.
    RepeatedIncrement,
    /// A transfer takes from one account and gives to none.
    TornTransfer,
    /// An element that was popped does not arrive.
    LostElement,
    /// A message does not arrive.
    LostMessage,
    /// A message arrives twice.
    RepeatedMessage,
    /// A message arrives after the channel was left.
    LateMessage,
    /// A reply does not arrive.
    LostReply,
    /// A client is not notified that a key has changed.
    LostInvalidation,
}

impl Fault {
    /// All faults, by their names on a command line.
    pub const ALL: &[(&str, Self)] = &[
        ("repeated-increment", Self::RepeatedIncrement),
        ("torn-transfer", Self::TornTransfer),
        ("lost-element", Self::LostElement),
        ("lost-message", Self::LostMessage),
        ("repeated-message", Self::RepeatedMessage),
        ("late-message", Self::LateMessage),
        ("lost-reply", Self::LostReply),
        ("lost-invalidation", Self::LostInvalidation),
    ];
}
