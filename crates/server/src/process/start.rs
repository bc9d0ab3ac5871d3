//! From the command line to a running server, and from a signal to its end.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use node::config::{Config, Invocation, USAGE, Warning, parse_arguments};
use node::host::SaveAtEnd;
use node::state::snapshots::Purpose;
use node::version;
use sys::epoll::Event;
use sys::signal::Signals;
use sys::title::ProcessTitle;

use super::banner::banner;
use super::load::load;
use super::signals;
use crate::disk::saves::NotBegun;
use crate::disk::startup::Startup;
use crate::http;
use crate::net::tls;
use crate::system::crash;
use crate::system::processors::bind_to_processors;
use crate::system::server_log::{self, notice, warning};
use crate::threads::active_threads::SAMPLE_MS;
use crate::threads::control::{self, RESERVED_FILES};
use crate::threads::io_thread::IoThread;
use crate::threads::message::Message;
use crate::threads::shared::SharedState;
use crate::threads::shared_setup::{main_thread, share};
use crate::threads::{accept, apply};

/// How long the allocator keeps unused pages.
const PAGE_DECAY_MS: isize = 1000;
/// Descriptors of a thread: its epoll instance and its mailbox's eventfd.
const FILES_A_THREAD: u64 = 2;

/// Runs `weft server` with its arguments until it ends.
pub fn run(args: &[OsString]) -> ExitCode {
    let (file, stdin, options) = match parse_arguments(args) {
        Invocation::Run { file, stdin, options } => (file, stdin, options),
        Invocation::Version => return print(&format!("{}\n", version_line())),
        Invocation::Help => return print(USAGE),
    };
    let prepared = load(file.as_deref(), stdin, &options)
        .and_then(|(config, warnings)| Ok((prepare(config, file.as_deref())?, warnings)));
    let failure = match prepared {
        Ok((prepared, warnings)) => match serve(prepared, &warnings) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(text) => {
                warning!("{text}");
                // The operator sees the log, unless it goes to a file.
                if server_log::is_seen() {
                    return ExitCode::FAILURE;
                }
                text
            }
        },
        Err(text) => text,
    };
    // An error of this output can be reported nowhere.
    let _ = writeln!(std::io::stderr(), "{failure}");
    ExitCode::FAILURE
}

/// Prints, and returns the status: a reader that closes the output wants no more, a full disk is a
/// failure.
fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// The output of `--version`, in Redis's form.
fn version_line() -> String {
    format!(
        "Weft server v={} sha={}:{} malloc={} bits={} build={}",
        version::VERSION,
        version::GIT_SHA1,
        version::GIT_DIRTY,
        sys::allocator::version(),
        usize::BITS,
        version::build_id()
    )
}

/// A process that is ready to log.
struct Prepared {
    config: Config,
    /// The path of its file; empty without one.
    config_file: String,
}

/// Enters the working directory, leaves the terminal if that is asked for, and opens the log.
///
/// # Errors
/// A text for the operator; nothing has been logged.
fn prepare(mut config: Config, file: Option<&OsStr>) -> Result<Prepared, String> {
    config.check_start()?;
    let config_file = file.map(absolute).transpose()?.unwrap_or_default();
    std::env::set_current_dir(&config.dir)
        .map_err(|error| format!("Can't change directory to '{}': {error}", config.dir))?;
    if let Ok(dir) = std::env::current_dir() {
        config.dir = dir.to_string_lossy().into_owned();
    }
    server_log::check(&config.logfile)
        .map_err(|error| format!("Can't open the log file '{}': {error}", config.logfile))?;
    if config.daemonize {
        sys::process::daemonize().map_err(|error| format!("Can't daemonize: {error}"))?;
    }
    apply::configure_log(&config);
    if config.syslog.enabled {
        apply::open_syslog(&config);
    }
    Ok(Prepared { config, config_file })
}

fn serve(prepared: Prepared, warnings: &[Warning]) -> Result<(), String> {
    let Prepared { mut config, config_file } = prepared;
    crash::begin(&config);
    let title = take_title(&config);
    let signals = Signals::block().map_err(|error| format!("Can't receive signals: {error}"))?;
    // Threads inherit both, the allocator's too, and `io-threads auto` counts the rest.
    bind_to_processors("server-cpulist", &config.server_cpulist);
    disable_huge_pages(&config);
    limit_clients(&mut config)?;
    sys::allocator::set_page_decay_ms(PAGE_DECAY_MS);
    sys::allocator::set_background_thread(config.jemalloc_bg_thread);
    notice!(
        "Weft version={}, bits={}, pid={}, just started",
        version::VERSION,
        usize::BITS,
        std::process::id()
    );
    for warning in warnings {
        warning!("{warning}");
    }
    let shared = share(&config, config_file)?;
    sys::process::name_thread(c"weft-main");
    let mut main = main_thread(&shared)?;
    crash::start_names();
    signals::start(signals, &shared).map_err(|error| format!("Can't receive signals: {error}"))?;
    let startup = Startup::begin(&shared.append_only, Arc::clone(&shared) as _)?;
    {
        let mut control = shared.control.lock();
        control.epoll = Some(Arc::clone(&main.epoll));
        control.title = title;
        control.show_title(&config);
        control.tls = tls::configure(&config)?;
        control.open_listeners(&config, Vec::new())?;
        // The log has reported the failure, and the server can run without it.
        let _ = control.oom_score.follow(&config);
        control.set_threads(&shared, control::threads_wanted(&config))?;
    }
    shared.follow_metrics(&config)?;
    write_pidfile(&config);
    announce_start(&shared);
    let ready = || announce(&config, &shared);
    main_loop(&mut main, &shared, StartWork { startup, expired_shards: 0, ready: &ready })?;
    end(&mut main, &shared, &config);
    // The system takes the memory back at once; to free millions of keys takes seconds.
    std::mem::forget(shared);
    Ok(())
}

/// The memory for a title and the name that the server was started by, before any thread starts.
fn take_title(config: &Config) -> Option<(ProcessTitle, String)> {
    if !config.set_proc_title {
        return None;
    }
    let program = std::env::args_os().next().unwrap_or_default().to_string_lossy().into_owned();
    match ProcessTitle::take() {
        Ok(title) => Some((title, program)),
        Err(error) => {
            warning!("'set-proc-title' has no effect: {error}");
            None
        }
    }
}

fn absolute(path: &OsStr) -> Result<String, String> {
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    Ok(path.to_string_lossy().into_owned())
}

fn disable_huge_pages(config: &Config) {
    if config.disable_thp
        && let Err(error) = sys::process::disable_huge_pages()
    {
        warning!("'disable-thp' has no effect: can't turn huge pages off: {error}");
    }
}

/// Lowers `maxclients` to the number that the system's limit of descriptors allows.
fn limit_clients(config: &mut Config) -> Result<(), String> {
    let threads = FILES_A_THREAD * control::threads_wanted(config) as u64;
    let metrics = if config.metrics.is_on() { http::FILES_MAX } else { 0 };
    let reserved = RESERVED_FILES + threads + metrics;
    let needed = u64::from(config.maxclients) + reserved;
    let limit = sys::process::raise_open_files(needed);
    if limit < needed {
        let left = limit.saturating_sub(reserved);
        if left == 0 {
            return Err(format!(
                "The limit of {limit} open files is too low for the server to start. Raise it \
                 with 'ulimit -n {needed}'."
            ));
        }
        warning!(
            "You requested maxclients of {} requiring at least {needed} max file descriptors, \
             but the limit is {limit}. maxclients has been reduced to {left}. Raise the limit \
             with 'ulimit -n {needed}'.",
            config.maxclients
        );
        config.maxclients = u32::try_from(left).unwrap_or(u32::MAX);
    }
    Ok(())
}

fn write_pidfile(config: &Config) {
    if config.pidfile.is_empty() {
        return;
    }
    let text = format!("{}\n", std::process::id());
    if let Err(error) = std::fs::write(&config.pidfile, text) {
        warning!("Failed to write PID file {}: {error}", config.pidfile);
    }
}

/// Says that clients can connect, though nothing may be loaded yet: a line that tools wait for.
fn announce_start(shared: &SharedState) {
    let threads = shared.process.threads_started.load(Ordering::Relaxed);
    let port = shared.control.lock().tcp_port();
    notice!("Running mode=standalone, port={port}, threads={threads}. PID: {}", std::process::id());
    notice!("Server initialized");
}

/// Says that the server is ready, in the lines that tools wait for.
fn announce(config: &Config, shared: &SharedState) {
    for (on, name) in [
        (config.port != 0, "tcp"),
        (config.tls_port != 0, "tls"),
        (!config.unixsocket.is_empty(), "unix"),
    ] {
        if on {
            notice!("Ready to accept connections {name}");
        }
    }
    let is_watched = std::io::stdout().is_terminal() || config.always_show_logo;
    let to_terminal = config.logfile.is_empty() && !config.syslog.enabled;
    if is_watched && to_terminal && !config.daemonize {
        let port = shared.control.lock().tcp_port();
        // A server serves whether or not it can be seen.
        let _ = writeln!(std::io::stdout(), "{}", banner(config, port));
    }
    super::notify::ready(config);
}

/// The work before the server is ready.
struct StartWork<'a> {
    /// Keys are being loaded.
    startup: Option<Startup>,
    /// Shards without fields that had expired when they were loaded.
    expired_shards: usize,
    ready: &'a dyn Fn(),
}

impl StartWork<'_> {
    /// Looks whether the server has become ready. Returns whether it is.
    fn look(&mut self, main: &mut IoThread) -> Result<bool, String> {
        if let Some(startup) = &mut self.startup
            && !(startup.look()? && main.expire_loaded_fields(&mut self.expired_shards))
        {
            return Ok(false);
        }
        if let Some(startup) = self.startup.take() {
            startup.end_loading();
            main.worker.take_over_config();
        }
        (self.ready)();
        Ok(true)
    }
}

fn main_loop(
    main: &mut IoThread,
    shared: &SharedState,
    start: StartWork<'_>,
) -> Result<(), String> {
    let mut start = Some(start);
    let scripting = &shared.node.scripting;
    let mut ending = false;
    let mut sample_at_ms = 0;
    // As in Redis, running commands are waited for, and only commands that end a script begin.
    while !(ending && main.has_come_to_end() && !awaits_files(shared) && has_saved(shared)) {
        if let Some(own) = &mut start
            && own.look(main)?
        {
            start = None;
        }
        main.turn(&mut |main: &mut IoThread, event: Event| {
            shared.control.lock().make_room(shared);
            accept::accept(shared, event.token(), main.steady_ms());
        });
        let now_ms = main.steady_ms();
        let mut control = shared.control.lock();
        control.take_signals(shared);
        // It may have been called off.
        let is_paused = shared.node.cron_paused.load(Ordering::Relaxed);
        let is_suspended = control.is_signalled && is_paused;
        let ends = control.shutdown.is_some() && !is_suspended;
        let was_ending = std::mem::replace(&mut ending, ends);
        if ending && !was_ending {
            warning!("User requested shutdown...");
        }
        let is_refused = ending && !scripting.end_harmless() && control.is_refused_when_busy();
        control.resume_accepting(now_ms);
        let samples = now_ms >= sample_at_ms;
        if samples {
            control.balance(shared);
        }
        drop(control);
        if is_refused && shared.go_on() {
            warning!("Shutdown called off: a script runs for too long that has written.");
            ending = false;
        }
        if !ending {
            main.forget_end();
        }
        if samples {
            sample_at_ms = now_ms + SAMPLE_MS;
            *shared.process.main_cpu.lock() = sys::process::thread_cpu_time();
        }
    }
    Ok(())
}

/// Whether the shutdown must wait for a file. The save of FLUSHALL comes before all others, and its
/// thread writes a file without keys instead of one that may take long.
fn awaits_files(shared: &SharedState) -> bool {
    let snapshots = &shared.node.snapshots;
    if !snapshots.is_emptied() {
        return awaits_base(shared);
    }
    snapshots.give_up(Purpose::Save);
    true
}

/// Whether the append-only file gets its first base, without which it has nothing. SHUTDOWN FORCE
/// does not wait for that.
fn awaits_base(shared: &SharedState) -> bool {
    let node = &shared.node;
    let is_awaited = node.append_only.lock().awaits_first_base;
    // After a script was ended by force nothing is saved: half of its changes exist.
    let is_possible = !node.is_loading() && !node.scripting.must_end();
    if !is_awaited || !is_possible || is_forced(shared) {
        return false;
    }
    // A save prevents the base from beginning, and the last save comes after the base.
    shared.saves.cancel();
    true
}

/// Saves before the end, if that is wanted, when nothing is executed. Returns false if that has
/// failed: then the server does not end.
fn has_saved(shared: &SharedState) -> bool {
    let how = {
        let mut control = shared.control.lock();
        let Some(how) = control.shutdown else { return false };
        // Later writes would be lost.
        control.ends = true;
        how
    };
    let (node, config) = (&shared.node, shared.node.config());
    // A save in progress would lack the changes since it began.
    shared.saves.cancel();
    let is_wanted = match how.save {
        SaveAtEnd::ByConfig => !config.saving.save.is_empty(),
        SaveAtEnd::Yes => true,
        SaveAtEnd::No => false,
    };
    if !is_wanted || node.is_loading() {
        return true;
    }
    shared.append_only.end_rewrite(how.force);
    notice!("Saving the final RDB snapshot before exiting.");
    match shared.saves.begin_save(Purpose::Save) {
        Ok(saving) if saving.wait() => return true,
        Err(NotBegun::Running(_)) => warning!("Can't save: another snapshot is being taken"),
        _ => {}
    }
    if how.force {
        warning!("Error trying to save the DB, but the shutdown is forced. Exiting.");
        return true;
    }
    warning!("Error trying to save the DB, can't exit.");
    let goes_on = shared.go_on();
    if goes_on {
        shared.append_only.go_on();
    }
    !goes_on
}

/// Whether the process ends in any case.
fn is_forced(shared: &SharedState) -> bool {
    shared.control.lock().shutdown.is_some_and(|how| how.force)
}

/// Lets the other threads send their output, closes the sockets and reports the end.
fn end(main: &mut IoThread, shared: &SharedState, config: &Config) {
    shared.node.scripting.end_when_busy();
    {
        let mut control = shared.control.lock();
        control.listeners.clear();
        control.end();
    }
    // Clients on their way between threads end here.
    shared.process.threads_active.store(1, Ordering::Release);
    for handle in shared.threads.handles.read().iter().skip(1) {
        handle.mailbox.send(Message::ShutDown);
    }
    main.outlive_others();
    main.finish();
    shared.append_only.end(is_forced(shared));
    shared.metrics.end();
    for slot in 0..main.slots.len() {
        main.close(slot);
    }
    if !config.pidfile.is_empty() {
        notice!("Removing the pid file.");
        let _ = std::fs::remove_file(&config.pidfile);
    }
    warning!("Weft is now ready to exit, bye bye...");
}
