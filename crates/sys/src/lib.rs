//! Floor 0: epoll, eventfd, affinity, signals, the allocator; the only floor besides ds with unsafe code.
