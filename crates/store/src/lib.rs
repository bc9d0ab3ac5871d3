//! Floor 2: one shard: databases, values, expiry, effects.
