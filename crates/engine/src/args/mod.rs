//! Arguments of commands of several families: their declarations for rows and their parsers.
//!
//! Commands may have different error texts for the same argument, and the order of errors is part
//! of a command's behavior. If texts differ, a function here returns an `Option` and the command
//! chooses the error. Arguments of one family are parsed in that family.

pub(crate) mod count;
pub(crate) mod expiry;
pub(crate) mod limit;
pub(crate) mod number;
pub(crate) mod range;
pub(crate) mod timeout;
