//! Arguments that commands of several families take: how rows declare them and how they are parsed.
//!
//! An argument can have another error text in each command, and the order in which a command
//! reports its errors is part of its behavior. Where texts differ, a function here returns an
//! `Option` and the command names the error. Arguments of one family are parsed in that family.

pub(crate) mod count;
pub(crate) mod expiry;
pub(crate) mod limit;
pub(crate) mod number;
pub(crate) mod range;
pub(crate) mod timeout;
