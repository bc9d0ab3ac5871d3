//! Client-side caching: what may be asked, what is remembered, what clients are told.

mod broadcast;
mod choice;
mod limit;
mod options;
mod read;
mod redirect;
mod whole;
