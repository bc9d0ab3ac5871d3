//! Enums for the parameters that take one of a few names.

use store::eviction::{EvictionChoice, EvictionOrder};

/// Declares an enum whose variants have names in configuration files.
///
/// Names match in any case and are printed as written here.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// The accepted names, in the order of error texts.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// Parses a name in any case.
            pub fn from_name(name: &[u8]) -> Option<Self> {
                $(if name.eq_ignore_ascii_case($text.as_bytes()) {
                    return Some(Self::$variant);
                })+
                None
            }

            /// The name of this value in a configuration.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

pub(super) use choice;

choice!(
    /// `maxmemory-policy`: which keys are evicted when memory exceeds its limit.
    EvictionPolicy {
        /// Least recently used keys with an expiry.
        VolatileLru = "volatile-lru",
        /// Least frequently used keys with an expiry.
        VolatileLfu = "volatile-lfu",
        /// Random keys with an expiry.
        VolatileRandom = "volatile-random",
        /// Keys that expire soonest.
        VolatileTtl = "volatile-ttl",
        /// Least recently used keys.
        AllKeysLru = "allkeys-lru",
        /// Least frequently used keys.
        AllKeysLfu = "allkeys-lfu",
        /// Random keys.
        AllKeysRandom = "allkeys-random",
        /// No eviction: commands that may use more memory are refused.
        None = "noeviction",
    }
);

choice!(
    /// `appendfsync`: when the append-only file is synced to disk.
    Fsync {
        /// In the background, once a second.
        EverySecond = "everysec",
        /// Before the reply.
        Always = "always",
        /// When the kernel decides.
        No = "no",
    }
);

choice!(
    /// `loglevel`: the lowest level that is logged.
    LogLevel {
        /// All lines.
        Debug = "debug",
        /// Details that an operator rarely needs.
        Verbose = "verbose",
        /// Events that matter in production.
        Notice = "notice",
        /// Only lines that need attention.
        Warning = "warning",
        /// No line at all.
        Nothing = "nothing",
    }
);

choice!(
    /// `syslog-facility`: the facility of lines in syslog.
    #[expect(missing_docs, reason = "the names are those of syslog")]
    SyslogFacility {
        User = "user",
        Local0 = "local0",
        Local1 = "local1",
        Local2 = "local2",
        Local3 = "local3",
        Local4 = "local4",
        Local5 = "local5",
        Local6 = "local6",
        Local7 = "local7",
    }
);

choice!(
    /// `supervised`: the supervisor that the server notifies when it is ready.
    Supervised {
        /// Upstart: the server stops itself with SIGSTOP.
        Upstart = "upstart",
        /// systemd: the server sends a datagram to `NOTIFY_SOCKET`.
        Systemd = "systemd",
        /// Detected from the environment.
        Auto = "auto",
        /// None.
        No = "no",
    }
);

choice!(
    /// `tls-auth-clients`: whether clients of the TLS port must present a certificate.
    ClientCerts {
        /// The server does not request one.
        No = "no",
        /// The handshake fails without a valid one.
        Yes = "yes",
        /// A client may present one, which must be valid.
        Optional = "optional",
    }
);

choice!(
    /// Clients that may use a dangerous feature: `enable-debug-command`, `enable-module-command`,
    /// `enable-protected-configs`.
    Permit {
        /// No client.
        No = "no",
        /// All clients.
        Yes = "yes",
        /// Clients of this host, by loopback address or unix socket.
        Local = "local",
    }
);

choice!(
    /// `oom-score-adj`: how the server sets the score by which the kernel's OOM killer chooses a
    /// process.
    OomScoreAdj {
        /// Leave the score unchanged.
        No = "no",
        /// Add a value to the initial score; CONFIG GET prints this also for `relative`.
        Yes = "yes",
        /// Same as `Yes`.
        Relative = "relative",
        /// Set the score to a value.
        Absolute = "absolute",
    }
);

choice!(
    /// `rdb-load-unknown`: what a load does with data of modules.
    UnknownData {
        /// The load fails.
        Refuse = "refuse",
        /// They are left out.
        Skip = "skip",
    }
);

choice!(
    /// `sanitize-dump-payload`: which RESTORE payloads Redis validates.
    Sanitize {
        /// None.
        No = "no",
        /// All.
        Yes = "yes",
        /// Those from clients.
        Clients = "clients",
    }
);

choice!(
    /// `acl-pubsub-default`: the channels that new users may use.
    PubsubDefault {
        /// All.
        All = "allchannels",
        /// None.
        None = "resetchannels",
    }
);

choice!(
    /// `io-threads-execute`: the commands that run on the thread that read them.
    Execute {
        /// Every data command.
        All = "all",
        /// Single-key commands; the main thread runs the rest.
        Simple = "simple",
        /// No command: the main thread runs all commands, as in Redis 8.
        None = "none",
    }
);

impl EvictionPolicy {
    /// How keys are chosen; `None` for `noeviction`.
    pub fn choice(self) -> Option<EvictionChoice> {
        let of = |volatile, order| Some(EvictionChoice { volatile, order });
        match self {
            Self::VolatileLru => of(true, EvictionOrder::LeastRecent),
            Self::VolatileLfu => of(true, EvictionOrder::LeastFrequent),
            Self::VolatileRandom => of(true, EvictionOrder::Random),
            Self::VolatileTtl => of(true, EvictionOrder::SoonestExpiry),
            Self::AllKeysLru => of(false, EvictionOrder::LeastRecent),
            Self::AllKeysLfu => of(false, EvictionOrder::LeastFrequent),
            Self::AllKeysRandom => of(false, EvictionOrder::Random),
            Self::None => None,
        }
    }

    /// Whether the policy depends on access frequency.
    pub fn is_lfu(self) -> bool {
        self.choice().is_some_and(|choice| choice.order == EvictionOrder::LeastFrequent)
    }

    /// Whether the policy depends on the last access time.
    pub fn is_lru(self) -> bool {
        self.choice().is_some_and(|choice| choice.order == EvictionOrder::LeastRecent)
    }
}
