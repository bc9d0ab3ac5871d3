//! Declarations of a script or function about itself.

/// Flags of a script's shebang or of a registered function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptFlags(u8);

/// The names in the order in which FUNCTION LIST shows them.
const NAMES: [(&str, ScriptFlags); 5] = [
    ("no-writes", ScriptFlags::NO_WRITES),
    ("allow-oom", ScriptFlags::ALLOW_OOM),
    ("allow-stale", ScriptFlags::ALLOW_STALE),
    ("no-cluster", ScriptFlags::NO_CLUSTER),
    ("allow-cross-slot-keys", ScriptFlags::ALLOW_CROSS_SLOT_KEYS),
];

impl ScriptFlags {
    /// `no-writes`: it calls no command that writes, and so runs even if memory is short.
    pub const NO_WRITES: ScriptFlags = ScriptFlags(1);
    /// `allow-oom`: it runs even if memory is short.
    pub const ALLOW_OOM: ScriptFlags = ScriptFlags(2);
    /// `allow-stale`: it runs on a replica that has lost its master.
    pub const ALLOW_STALE: ScriptFlags = ScriptFlags(4);
    /// `no-cluster`: it does not run in cluster mode.
    pub const NO_CLUSTER: ScriptFlags = ScriptFlags(8);
    /// `allow-cross-slot-keys`: it may use keys of several slots.
    pub const ALLOW_CROSS_SLOT_KEYS: ScriptFlags = ScriptFlags(16);

    /// Whether all flags of `other` are set.
    pub fn contains(self, other: ScriptFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags of either.
    pub fn union(self, other: ScriptFlags) -> ScriptFlags {
        ScriptFlags(self.0 | other.0)
    }

    /// The flag with this name, in the same case.
    pub fn named(name: &[u8]) -> Option<ScriptFlags> {
        NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, flag)| *flag)
    }

    /// The flag with this name, in any case.
    pub fn named_any_case(name: &[u8]) -> Option<ScriptFlags> {
        let known = |known: &str| known.as_bytes().eq_ignore_ascii_case(name);
        NAMES.iter().find(|(name, _)| known(name)).map(|(_, flag)| *flag)
    }

    /// The names of the set flags.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().filter(move |(_, flag)| self.contains(*flag)).map(|(name, _)| *name)
    }
}
