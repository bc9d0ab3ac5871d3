//! The result of a check, and the settings that it requires.

/// The state of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingState {
    /// It is right.
    Good,
    /// It should change, and `--apply` changes it.
    Change,
    /// It should change, by an administrator who knows what else depends on it.
    ByHand,
    /// It cannot be read.
    Unknown,
}

impl FindingState {
    /// The word for it in both outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Change => "change",
            Self::ByHand => "by hand",
            Self::Unknown => "unknown",
        }
    }
}

/// A value for a file of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSetting {
    /// The file, an absolute path below the root.
    pub path: String,
    /// The text to write into it.
    pub value: String,
}

impl KernelSetting {
    pub fn new(path: impl Into<String>, value: impl Into<String>) -> Self {
        Self { path: path.into(), value: value.into() }
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct HostFinding {
    pub state: FindingState,
    /// The current value.
    pub found: String,
    /// The wanted value, or what to do; empty if the setting is right.
    pub wanted: String,
    /// Why the setting matters.
    pub why: String,
    /// The settings that `--apply` writes.
    pub settings: Vec<KernelSetting>,
}

impl HostFinding {
    pub fn good(found: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            state: FindingState::Good,
            found: found.into(),
            wanted: String::new(),
            why: why.into(),
            settings: Vec::new(),
        }
    }
    pub fn change(
        found: impl Into<String>,
        wanted: impl Into<String>,
        why: impl Into<String>,
        settings: Vec<KernelSetting>,
    ) -> Self {
        Self {
            state: FindingState::Change,
            wanted: wanted.into(),
            settings,
            ..Self::good(found, why)
        }
    }
    pub fn by_hand(
        found: impl Into<String>,
        wanted: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self { state: FindingState::ByHand, wanted: wanted.into(), ..Self::good(found, why) }
    }
    pub fn unknown(path: &str, why: impl Into<String>) -> Self {
        Self { state: FindingState::Unknown, ..Self::good(format!("{path} cannot be read"), why) }
    }
}
