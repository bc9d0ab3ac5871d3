//! Floor 7: the measuring stick: bench and the floor it is measured against.
