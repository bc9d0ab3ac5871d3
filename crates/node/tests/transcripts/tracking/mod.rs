//! Client-side caching: options, tracked keys and notifications.

mod broadcast;
mod choice;
mod limit;
mod options;
mod read;
mod redirect;
mod whole;
