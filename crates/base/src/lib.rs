//! Floor 0: numbers, glob, argument splitting, clock values, random; knows nothing of the domain.
