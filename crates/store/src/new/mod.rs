//! Values that are built before they are stored.

pub(crate) mod hash;
pub(crate) mod set;
pub(crate) mod sorted_set;
pub(crate) mod string;
pub(crate) mod value;
