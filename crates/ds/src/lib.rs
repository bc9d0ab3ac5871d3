//! Floor 1: containers: the table and the record; unsafe code allowed.
