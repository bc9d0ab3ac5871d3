//! Parameters that take one of a few names.

use store::eviction::{EvictionChoice, EvictionOrder};

/// Declares an enum whose variants have names in configuration files.
///
/// Names are matched in any case and printed as written here; their order is that of error texts.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// What a configuration may say, in the order of error texts.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// The value of that name, in any case.
            pub fn from_name(name: &[u8]) -> Option<Self> {
                $(if name.eq_ignore_ascii_case($text.as_bytes()) {
                    return Some(Self::$variant);
                })+
                None
            }

            /// The name a configuration gives this value.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

choice!(
    /// `maxmemory-policy`: which keys go when memory is over its limit.
    EvictionPolicy {
        /// Of the keys that have an expiry, those that were not used for the longest time.
        VolatileLru = "volatile-lru",
        /// Of these, those that are used least often.
        VolatileLfu = "volatile-lfu",
        /// Of these, any.
        VolatileRandom = "volatile-random",
        /// Of these, those that expire first.
        VolatileTtl = "volatile-ttl",
        /// Of all keys, those that were not used for the longest time.
        AllKeysLru = "allkeys-lru",
        /// Of all, those that are used least often.
        AllKeysLfu = "allkeys-lfu",
        /// Of all, any.
        AllKeysRandom = "allkeys-random",
        /// None: commands that may take more memory are refused.
        None = "noeviction",
    }
);

choice!(
    /// `appendfsync`: when what was appended is made certain to be on the disk.
    Fsync {
        /// In the background, once a second.
        EverySecond = "everysec",
        /// Before the answer.
        Always = "always",
        /// When the system likes.
        No = "no",
    }
);

choice!(
    /// `loglevel`: the least grave line that is still logged.
    LogLevel {
        /// Everything.
        Debug = "debug",
        /// What an administrator rarely needs.
        Verbose = "verbose",
        /// What happens in production.
        Notice = "notice",
        /// Only what someone should look at.
        Warning = "warning",
        /// No line at all.
        Nothing = "nothing",
    }
);

choice!(
    /// `syslog-facility`: which part of the system's log lines belong to.
    SyslogFacility {
        /// Programs of users.
        User = "user",
        /// The first of those for local use.
        Local0 = "local0",
        /// The second.
        Local1 = "local1",
        /// The third.
        Local2 = "local2",
        /// The fourth.
        Local3 = "local3",
        /// The fifth.
        Local4 = "local4",
        /// The sixth.
        Local5 = "local5",
        /// The seventh.
        Local6 = "local6",
        /// The last.
        Local7 = "local7",
    }
);

choice!(
    /// `supervised`: who started the server and waits to hear that it is ready.
    Supervised {
        /// Upstart: stops itself once with SIGSTOP.
        Upstart = "upstart",
        /// systemd: a datagram to `NOTIFY_SOCKET`.
        Systemd = "systemd",
        /// Whichever of them the environment shows.
        Auto = "auto",
        /// Nobody.
        No = "no",
    }
);

choice!(
    /// `tls-auth-clients`: whether clients of the TLS port must show a certificate.
    ClientCerts {
        /// None is asked for.
        No = "no",
        /// Without a valid one the handshake fails.
        Yes = "yes",
        /// One that is shown must be valid.
        Optional = "optional",
    }
);

choice!(
    /// Who may use a dangerous feature: `enable-debug-command`, `enable-module-command`,
    /// `enable-protected-configs`.
    Permit {
        /// Nobody.
        No = "no",
        /// Everybody.
        Yes = "yes",
        /// Clients of this host: loopback addresses and the unix socket.
        Local = "local",
    }
);

choice!(
    /// `oom-score-adj`: whose score the kernel is told, by which it chooses a process to end when
    /// memory is short.
    OomScoreAdj {
        /// Leave it as it is.
        No = "no",
        /// Add a value to what the score was; CONFIG GET prints this also for `relative`.
        Yes = "yes",
        /// The same.
        Relative = "relative",
        /// Set it to a value.
        Absolute = "absolute",
    }
);

choice!(
    /// `sanitize-dump-payload`: whose payloads Redis looks through before it takes a value.
    Sanitize {
        /// Nobody's.
        No = "no",
        /// Everybody's.
        Yes = "yes",
        /// Those of clients.
        Clients = "clients",
    }
);

choice!(
    /// `acl-pubsub-default`: which channels new users may use.
    PubsubDefault {
        /// All.
        All = "allchannels",
        /// None.
        None = "resetchannels",
    }
);

choice!(
    /// `io-threads-execute`: which commands run on the thread that read them.
    Execute {
        /// Every data command.
        All = "all",
        /// Single-key commands; the main thread runs the rest.
        Simple = "simple",
        /// None: the main thread runs every command, as in Redis 8.
        None = "none",
    }
);

impl EvictionPolicy {
    /// How keys are chosen. None: no key goes.
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

    /// Whether it counts how often keys are used.
    pub fn is_lfu(self) -> bool {
        self.choice().is_some_and(|choice| choice.order == EvictionOrder::LeastFrequent)
    }

    /// Whether it asks when keys were last used.
    pub fn is_lru(self) -> bool {
        self.choice().is_some_and(|choice| choice.order == EvictionOrder::LeastRecent)
    }
}
