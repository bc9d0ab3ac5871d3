//! Makes the process follow a changed configuration.

use std::path::Path;

use node::config::{Apply, Config, LogLevel, SyslogFacility};
use node::host::Undo;
use sys::syslog::Facility;

use crate::net::tls;
use crate::system::crash;
use crate::system::server_log::warning;
use crate::system::server_log::{self, Level};
use crate::threads::control::{RESERVED_FILES, threads_wanted};
use crate::threads::shared::SharedState;

/// The reply of CONFIG SET when a socket cannot be opened, as in Redis; the log says why.
const LISTEN_FAILED: &str = "Unable to listen on this port. Check server logs.";
const BIND_FAILED: &str = "Failed to bind to specified addresses.";

/// Points the log where a configuration says, and says whether it has crashes.
pub fn configure_log(config: &Config) {
    let level = match config.loglevel {
        LogLevel::Debug => Some(Level::Debug),
        LogLevel::Verbose => Some(Level::Verbose),
        LogLevel::Notice => Some(Level::Notice),
        LogLevel::Warning => Some(Level::Warning),
        LogLevel::Nothing => None,
    };
    server_log::configure(level, &config.logfile);
    crash::follow(config);
}

pub fn open_syslog(config: &Config) {
    let facility = match config.syslog.facility {
        SyslogFacility::User => Facility::User,
        SyslogFacility::Local0 => Facility::Local(0),
        SyslogFacility::Local1 => Facility::Local(1),
        SyslogFacility::Local2 => Facility::Local(2),
        SyslogFacility::Local3 => Facility::Local(3),
        SyslogFacility::Local4 => Facility::Local(4),
        SyslogFacility::Local5 => Facility::Local(5),
        SyslogFacility::Local6 => Facility::Local(6),
        SyslogFacility::Local7 => Facility::Local(7),
    };
    server_log::open_syslog(&config.syslog.ident, facility);
}

/// Makes the process follow a changed configuration in one respect. Returns the function that
/// reverts it.
///
/// # Errors
/// Why it cannot be followed. Nothing has changed then.
pub fn apply<'a>(
    shared: &'a SharedState,
    step: Apply,
    old: &'a Config,
    new: &'a Config,
) -> Result<Undo<'a>, String> {
    match step {
        Apply::Listeners => follow_listeners(shared, old, new),
        Apply::Threads => {
            let undo = || shared.control.lock().reset_threads(shared, threads_wanted(old));
            let followed = shared.control.lock().set_threads(shared, threads_wanted(new));
            // Some threads may have been started.
            followed.inspect_err(|_| undo())?;
            Ok(Box::new(undo))
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
            Ok(nothing_to_undo())
        }
        Apply::Log => {
            configure_log(new);
            Ok(Box::new(|| configure_log(old)))
        }
        Apply::Directory => enter_directory(new),
        Apply::Allocator => {
            sys::allocator::set_background_thread(new.jemalloc_bg_thread);
            Ok(Box::new(|| {
                sys::allocator::set_background_thread(old.jemalloc_bg_thread);
            }))
        }
        Apply::Title => {
            let show = |config| shared.control.lock().show_title(config);
            show(new);
            Ok(Box::new(move || show(old)))
        }
        Apply::OomScore => {
            let follow = |config| shared.control.lock().oom_score.follow(config);
            follow(new)?;
            Ok(Box::new(move || log_error(follow(old))))
        }
        Apply::AppendOnly => follow_append_only(shared, old, new),
        Apply::Saving => {
            shared.node.follow_saves(new);
            Ok(Box::new(|| shared.node.follow_saves(old)))
        }
        Apply::Metrics => follow_metrics(shared, old, new),
        Apply::Tls => follow_tls(shared, new),
        Apply::NoEffect(name, reason) => {
            warning!("'{name}' has no effect: {reason}");
            Ok(nothing_to_undo())
        }
        Apply::Nothing => Ok(nothing_to_undo()),
    }
}

/// Goes to another working directory. The way back is a descriptor: the path in the configuration
/// may be relative to another directory, and the name may be that of another one by now, or gone.
fn enter_directory(new: &Config) -> Result<Undo<'static>, String> {
    let before = sys::process::open_directory(Path::new(".")).map_err(|error| error.to_string())?;
    std::env::set_current_dir(&new.dir).map_err(|error| error.to_string())?;
    Ok(Box::new(move || {
        let entered = sys::process::enter_directory(&before);
        log_error(entered.map_err(|error| error.to_string()));
    }))
}

/// Begins or ends the append-only file, or changes its policy, which is in force when this returns:
/// the requests that follow rely on it.
fn follow_append_only<'a>(
    shared: &'a SharedState,
    old: &'a Config,
    new: &Config,
) -> Result<Undo<'a>, String> {
    let (was_on, is_on) = (old.append_only.appendonly, new.append_only.appendonly);
    let append_only = &shared.append_only;
    match (was_on, is_on) {
        (false, true) => {
            append_only.start(new)?;
            Ok(Box::new(|| append_only.stop()))
        }
        (true, false) => {
            append_only.stop();
            Ok(Box::new(|| log_error(append_only.start(old))))
        }
        _ => {
            append_only.configured(new);
            Ok(Box::new(|| append_only.configured(old)))
        }
    }
}

fn nothing_to_undo() -> Undo<'static> {
    Box::new(|| ())
}

/// Failures while a change is reverted are logged, and the client does not get them.
fn log_error(result: Result<(), String>) {
    if let Err(reason) = result {
        warning!("Can't return to the former configuration: {reason}");
    }
}

/// Sockets that the new configuration does not ask for listen on until the change is final.
fn follow_listeners<'a>(
    shared: &'a SharedState,
    old: &'a Config,
    new: &Config,
) -> Result<Undo<'a>, String> {
    // The new sockets may be the first that speak TLS.
    let undo_tls = follow_tls(shared, new)?;
    let opened = shared.control.lock().open_listeners(new, Vec::new());
    match opened {
        Ok(unwanted) => {
            // It may name the port.
            shared.control.lock().show_title(new);
            Ok(Box::new(move || {
                let mut control = shared.control.lock();
                log_error(control.open_listeners(old, unwanted).map(drop));
                control.show_title(old);
                drop(control);
                undo_tls();
            }))
        }
        Err(reason) => {
            undo_tls();
            warning!("{reason}");
            let same_ports = old.port == new.port && old.tls_port == new.tls_port;
            Err(if same_ports { BIND_FAILED } else { LISTEN_FAILED }.to_owned())
        }
    }
}

/// Serves metrics where the new configuration asks for them. The old sockets are closed before: a
/// new one may have the port of an old one.
fn follow_metrics<'a>(
    shared: &'a SharedState,
    old: &'a Config,
    new: &Config,
) -> Result<Undo<'a>, String> {
    if let Err(reason) = shared.follow_metrics(new) {
        warning!("{reason}");
        log_error(shared.follow_metrics(old));
        return Err(LISTEN_FAILED.to_owned());
    }
    Ok(Box::new(move || log_error(shared.follow_metrics(old))))
}

/// Gives the connections to come another TLS setup. The files are read before the lock is taken.
fn follow_tls<'a>(shared: &'a SharedState, new: &Config) -> Result<Undo<'a>, String> {
    let setup = tls::configure(new)?;
    let before = std::mem::replace(&mut shared.control.lock().tls, setup);
    Ok(Box::new(move || shared.control.lock().tls = before))
}
