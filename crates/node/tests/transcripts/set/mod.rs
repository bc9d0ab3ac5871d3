//! Sets.

mod algebra;
mod encoding;
mod member;
mod random;
mod scan;
