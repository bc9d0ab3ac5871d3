//! The errors of CLIENT TRACKING and CLIENT CACHING, whose handlers are on layer 5.

use std::fmt;

/// Why options of tracking are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrackingError {
    /// REDIRECT twice.
    SecondRedirect,
    /// REDIRECT to an unknown client.
    NoSuchTarget,
    /// PREFIX without BCAST.
    PrefixWithoutBroadcast,
    /// BCAST cannot be turned on or off while tracking.
    BroadcastSwitched,
    /// OPTIN or OPTOUT with BCAST.
    ChoiceWithBroadcast,
    /// OPTIN and OPTOUT.
    InAndOut,
    /// OPTIN and OPTOUT cannot be exchanged while tracking.
    ChoiceSwitched,
    /// A prefix that overlaps with one that the client has.
    OverlapsOwn(String, String),
    /// A prefix that overlaps with another of the same request.
    OverlapsOther(String, String),
    /// CLIENT CACHING from a client that is not tracking.
    NotTracking,
    /// CLIENT CACHING YES without OPTIN.
    DoesNotOptIn,
    /// CLIENT CACHING NO without OPTOUT.
    DoesNotOptOut,
}

impl fmt::Display for TrackingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OVERLAP: &str = "Prefixes for a single client must not overlap.";
        f.write_str(match self {
            Self::SecondRedirect => "ERR A client can only redirect to a single other client",
            Self::NoSuchTarget => "ERR The client ID you want redirect to does not exist",
            Self::PrefixWithoutBroadcast => "ERR PREFIX option requires BCAST mode to be enabled",
            Self::BroadcastSwitched => {
                "ERR You can't switch BCAST mode on/off before disabling tracking for this \
                 client, and then re-enabling it with a different mode."
            }
            Self::ChoiceWithBroadcast => "ERR OPTIN and OPTOUT are not compatible with BCAST",
            Self::InAndOut => "ERR You can't specify both OPTIN mode and OPTOUT mode",
            Self::ChoiceSwitched => {
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this \
                 client, and then re-enabling it with a different mode."
            }
            Self::OverlapsOwn(prefix, own) => {
                return write!(
                    f,
                    "ERR Prefix '{prefix}' overlaps with an existing prefix '{own}'. {OVERLAP}"
                );
            }
            Self::OverlapsOther(prefix, other) => {
                return write!(
                    f,
                    "ERR Prefix '{prefix}' overlaps with another provided prefix '{other}'. \
                     {OVERLAP}"
                );
            }
            Self::NotTracking => {
                "ERR CLIENT CACHING can be called only when the client is in tracking mode with \
                 OPTIN or OPTOUT mode enabled"
            }
            Self::DoesNotOptIn => {
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
            }
            Self::DoesNotOptOut => {
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
            }
        })
    }
}
