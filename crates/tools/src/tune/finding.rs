//! What a check has found, and what to do about it.

/// How a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingState {
    /// As it should be.
    Good,
    /// To be changed, which `--apply` does.
    Change,
    /// To be changed by somebody who knows what else depends on it.
    ByHand,
    /// Not to be seen from here.
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
    /// What to write into it.
    pub value: String,
}

impl KernelSetting {
    /// One setting.
    pub fn new(path: impl Into<String>, value: impl Into<String>) -> Self {
        Self { path: path.into(), value: value.into() }
    }
}

/// What a check says.
#[derive(Clone, Debug)]
pub struct HostFinding {
    /// How it is.
    pub state: FindingState,
    /// What is there now.
    pub found: String,
    /// What should be there, or what to do; empty when all is right.
    pub wanted: String,
    /// Why that matters.
    pub why: String,
    /// What `--apply` writes.
    pub settings: Vec<KernelSetting>,
}

impl HostFinding {
    /// All is right.
    pub fn good(found: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            state: FindingState::Good,
            found: found.into(),
            wanted: String::new(),
            why: why.into(),
            settings: Vec::new(),
        }
    }

    /// Something is to be changed, by these settings.
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

    /// Something is to be changed by hand.
    pub fn by_hand(
        found: impl Into<String>,
        wanted: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self { state: FindingState::ByHand, wanted: wanted.into(), ..Self::good(found, why) }
    }

    /// A file cannot be read.
    pub fn unknown(path: &str, why: impl Into<String>) -> Self {
        Self { state: FindingState::Unknown, ..Self::good(format!("{path} cannot be read"), why) }
    }
}
