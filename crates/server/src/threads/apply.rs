//! Makes the process follow a changed configuration.

use node::config::{Apply, Change, Config, LogLevel};

use crate::net::tls;
use crate::process::log::{self, Level};
use crate::threads::control::{RESERVED_FILES, threads_wanted};
use crate::threads::shared::Shared;

/// Points the log where a configuration says.
pub fn configure_log(config: &Config) {
    let level = match config.loglevel {
        LogLevel::Debug => Some(Level::Debug),
        LogLevel::Verbose => Some(Level::Verbose),
        LogLevel::Notice => Some(Level::Notice),
        LogLevel::Warning => Some(Level::Warning),
        LogLevel::Nothing => None,
    };
    log::configure(level, &config.logfile);
}

/// Makes the process follow a changed configuration.
///
/// # Errors
/// The parameter that could not be followed, and why; what was done before it stays done, and the
/// caller keeps the old configuration.
pub fn apply(
    shared: &Shared,
    changes: &[Change],
    old: &Config,
    new: &Config,
) -> Result<(), (&'static str, String)> {
    let old_tls = shared.control.lock().tls.clone();
    for change in changes {
        if let Err(reason) = apply_one(shared, change.apply, old, new) {
            shared.control.lock().tls = old_tls;
            return Err((change.name, reason));
        }
    }
    Ok(())
}

fn apply_one(shared: &Shared, what: Apply, old: &Config, new: &Config) -> Result<(), String> {
    match what {
        Apply::Listeners => {
            // The new sockets may be the first that speak TLS.
            apply_tls(shared, new)?;
            let mut control = shared.control.lock();
            let opened = control.open_listeners(new);
            if opened.is_err() {
                control.open_listeners(old)?;
            }
            opened
        }
        Apply::Threads => {
            let wanted = threads_wanted(new);
            shared.control.lock().set_threads(shared, wanted)
        }
        Apply::Clients => {
            let needed = u64::from(new.maxclients) + RESERVED_FILES;
            if sys::process::raise_open_files(needed) < needed {
                return Err(format!(
                    "The operating system is not able to handle the specified number of \
                     clients, try with {}",
                    sys::process::raise_open_files(0).saturating_sub(RESERVED_FILES)
                ));
            }
            Ok(())
        }
        Apply::Log => {
            configure_log(new);
            Ok(())
        }
        Apply::Directory => std::env::set_current_dir(&new.dir).map_err(|error| error.to_string()),
        Apply::Allocator => {
            sys::allocator::set_background_thread(new.jemalloc_bg_thread);
            Ok(())
        }
        Apply::Tls => apply_tls(shared, new),
        Apply::Nothing
        | Apply::Limits
        | Apply::Password
        | Apply::Cron
        | Apply::Keyspace
        | Apply::Slowlog => Ok(()),
    }
}

/// Gives the connections to come another TLS setup. The files are read before the lock is taken.
fn apply_tls(shared: &Shared, new: &Config) -> Result<(), String> {
    let setup = tls::configure(new)?;
    shared.control.lock().tls = setup;
    Ok(())
}
