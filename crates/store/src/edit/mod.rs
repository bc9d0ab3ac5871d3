//! The operations of [`Edit`](crate::Edit) and [`Db`](crate::Db) on each type of value.

pub(crate) mod hash;
mod hash_expiry;
mod list;
mod set;
pub(crate) mod sorted_set;
mod stream;
pub(crate) mod string;
