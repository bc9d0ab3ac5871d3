//! How a worker follows the configuration: its admission mask, its limits, and which runs it looks
//! at closely.

use std::sync::Arc;

use command::Flags;
use engine::Error;
use pubsub::ChannelKind;
use store::WriteLog;

use super::worker::Worker;
use crate::clients::session::Session;
use crate::command_table::admission_flags as flags;
use crate::command_table::entry::{Call, Entry};
use crate::config::Execute;
use crate::state::memory_limit::{EvictsOn, Limit, follow_config};
use crate::stats::hot_keys::Participant;

impl Worker {
    /// Takes over a changed configuration, so that later requests of the batch see it.
    #[inline]
    pub fn take_over_config(&mut self) {
        let generation = self.node.generation();
        if generation != self.generation {
            self.generation = generation;
            self.config = self.node.config();
            self.follow_config();
        }
    }

    /// The admission flags that send a command to the main thread.
    fn flags_of_main(&self) -> u16 {
        match self.config.io_threads_execute {
            // A script that may call anything may need the main thread.
            Execute::All if self.config.scripts.allow_noscript => flags::MAIN | flags::NOT_SIMPLE,
            Execute::All => flags::MAIN,
            Execute::Simple => flags::MAIN | flags::NOT_SIMPLE,
            Execute::None => flags::MAIN | flags::NOT_SIMPLE | flags::ANY,
        }
    }

    /// Whether another thread would send this request of its client here, to the main thread.
    pub fn is_for_main(&self, session: &Session, entry: Option<&Entry>) -> bool {
        let Some(entry) = entry else { return false };
        let command_flags = match &session.transaction {
            None => entry.admission_flags,
            // It is queued on this thread.
            Some(_) if !entry.spec.flags.has(Flags::NOT_QUEUED) => 0,
            Some(transaction) if matches!(entry.call, Call::Exec) => {
                flags::of_exec(entry.admission_flags, transaction.admission_flags())
            }
            Some(_) => entry.admission_flags,
        };
        command_flags & self.flags_of_main() != 0
    }

    /// Sets the log of writes, if there is one. No command runs.
    pub fn set_log(&mut self, log: Option<Box<dyn WriteLog>>) {
        self.turn.effects.set_log(log);
        self.follow_config();
    }

    pub(super) fn follow_config(&mut self) {
        self.admission_mask = if self.index == 0 { 0 } else { self.flags_of_main() };
        let notified = self.config.notify_keyspace_events.classes();
        self.turn.effects.set_notified(notified);
        if !notified.is_empty() {
            self.admission_mask |= flags::NOTIFIES;
        }
        if self.node.refusals.any() {
            self.admission_mask |= flags::KEPT;
        }
        if self.node.is_loading() {
            self.admission_mask |= flags::NOT_LOADED;
        }
        if self.turn.effects.is_logged() {
            self.admission_mask |= flags::LOGS;
        }
        self.admit_scripts(self.admits_scripts);
        if self.mask_with_access.is_some() {
            self.mask_with_access = Some(self.admission_mask);
            self.admission_mask = flags::ANY | flags::HOME;
        }
        self.follow_memory_config();
        self.follow_client_limit();
        self.turn.unlink_expired = self.config.lazyfree.lazy_expire;
        self.turn.unlink_emptied = self.config.lazyfree.lazy_server_del;
        self.turn.restores_unchecked = self.config.saving.restores_unchecked;
        self.tracks_latency = self.config.latency.tracking;
        let tsc = |micros: f64| (micros * self.tsc_per_micro) as u64;
        self.slowlog_tsc = match u64::try_from(self.config.slowlog_log_slower_than) {
            Ok(micros) => tsc(micros as f64),
            Err(_) => u64::MAX,
        };
        self.slow_tsc = match self.config.latency.monitor_threshold_ms {
            0 => self.slowlog_tsc,
            ms => self.slowlog_tsc.min(tsc(ms as f64 * 1000.0)),
        };
        self.follow_hotkeys();
        self.shows_requests = self.node.pubsub.len(ChannelKind::Requests) > 0;
        if self.shows_requests {
            self.slow_tsc = 0;
        }
    }

    /// Takes part in the session of HOTKEYS, in which every run is looked at, if there is one.
    fn follow_hotkeys(&mut self) {
        let session = self.node.hotkeys.lock().clone();
        let session = session.filter(|session| session.is_active(self.turn.steady_ms));
        let before = self.hotkeys.take();
        self.hotkeys = session.map(|session| match before {
            Some(before) if Arc::ptr_eq(&before.session, &session) => before,
            _ => Participant::new(session),
        });
        if self.hotkeys.is_some() {
            self.slow_tsc = 0;
        }
    }

    /// Whether commands that run scripts are executed. While a script takes long, the thread has to
    /// serve its other clients, which takes preparation.
    #[inline]
    pub fn admit_scripts(&mut self, admits: bool) {
        self.admits_scripts = admits;
        let others = self.admission_mask & !flags::SCRIPT;
        self.admission_mask = if admits { others } else { others | flags::SCRIPT };
    }

    /// A random number below `period`, for choosing runs to sample.
    pub(crate) fn sample_below(&mut self, period: u64) -> u64 {
        self.sampler.below(period)
    }

    /// The session of HOTKEYS has ended.
    pub(crate) fn leave_hotkeys(&mut self) {
        self.hotkeys = None;
        self.follow_config();
    }

    /// Remembers that something took so many milliseconds, unless that is less than
    /// `latency-monitor-threshold` or this is 0. `event` is the name that LATENCY shows.
    pub fn note_latency(&self, event: &'static str, ms: u64) {
        let threshold_ms = self.config.latency.monitor_threshold_ms;
        if threshold_ms != 0 && ms >= threshold_ms {
            let unix_seconds = self.turn.unix_ms.div_euclid(1000);
            self.node.latency_events.lock().add(event, unix_seconds, ms);
        }
    }

    /// Why commands that change keys are refused, if they are.
    #[inline]
    pub(crate) fn refusal_of_writes(&self) -> Option<Error> {
        (self.admission_mask & flags::KEPT != 0).then(|| self.node.refusal()).flatten()
    }

    /// Whether memory has a limit, which it may be over.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.limit.bytes != 0
    }

    pub(crate) fn follow_memory_config(&mut self) {
        follow_config(&mut self.turn, &self.config);
        let before = std::mem::replace(&mut self.limit, Limit::new(&self.config));
        if before.bytes != self.limit.bytes && self.index == 0 {
            self.node.eviction.begin(self.node.used_memory.total());
            self.limit_changed = true;
        }
        self.out_of_memory &= self.limit.bytes != 0;
        // Memory may be over a new limit while no client sends a command.
        if self.limit.bytes != 0 && self.index == 0 {
            self.evicts_on = EvictsOn::AtOnce;
        }
    }

    pub(crate) fn follow_client_limit(&mut self) {
        let before = self.clients_bytes_max;
        let limit = self.config.eviction.clients_bytes_max();
        self.clients_bytes_max = limit.map_or(0, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let is_limited = self.clients_bytes_max != 0;
        if self.index == 0 && is_limited != (before != 0) {
            for record in self.node.clients.all() {
                match is_limited {
                    true => self.node.client_memory.count(self.index, &record),
                    false => self.node.client_memory.forget(self.index, &record, false),
                }
            }
        }
    }
}
