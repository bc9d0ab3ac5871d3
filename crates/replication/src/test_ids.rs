//! Ids for tests.

use crate::replid::ReplicationId;

/// An id that depends on a number.
pub(crate) fn id(number: u8) -> ReplicationId {
    ReplicationId::from_random([number; 20])
}
