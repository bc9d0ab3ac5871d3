//! Floor 4: what commands mean: one file per family, one row per command.
