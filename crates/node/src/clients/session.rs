//! The private state of a client, for the thread that owns it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use acl::User;
use store::LogPosition;
use tracking::TrackingState;

use super::record::{ClientRecord, SESSION_BYTES, flag};
use super::transaction_queue::Transaction;
use super::users::UserRegistry;
use super::watched_keys::WatchedKeys;

/// The mode that CLIENT REPLY has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMode {
    /// Every command is answered.
    On,
    /// No command is.
    Off,
    /// The next command is not.
    SkipNext,
    /// The running command is not answered; later ones are.
    Skip,
}

/// A bit that no generation of users has.
const RESTRICTED: u64 = 1 << 63;

/// One client's state.
#[derive(Debug)]
pub struct Session {
    /// Its public facts.
    pub record: Arc<ClientRecord>,
    /// Its database.
    pub db: usize,
    /// It speaks RESP3.
    pub resp3: bool,
    subscribed: bool,
    /// It watches all requests.
    watches_requests: bool,
    /// It has authenticated, or did not need to when it connected.
    authenticated: bool,
    /// Its reads do not count as uses of keys.
    pub no_touch: bool,
    /// It has sent SHUTDOWN, which waits for the commands that run.
    pub(crate) awaits_shutdown: bool,
    /// Which replies it gets.
    pub reply_mode: ReplyMode,
    /// The commands that it has queued since MULTI.
    pub(crate) transaction: Option<Box<Transaction>>,
    pub(crate) watched: Option<Box<WatchedKeys>>,
    /// How it tracks keys; `None` if it does not.
    pub(crate) tracking: Option<Box<TrackingState>>,
    /// The position in the log after its last write.
    pub(crate) written: Option<LogPosition>,
    /// `None` if its request does not wait for undeclared keys of a script.
    script_needs: Option<Box<ScriptNeeds>>,
    user: Arc<User>,
    /// The generation of users as of which that is known, with [`RESTRICTED`] if some request of it
    /// could be denied.
    users_seen: u64,
}

/// The hashes of the undeclared keys for which the script of a deferred request has begun again.
/// Each of its runs locks their shards together with those of the declared keys.
#[derive(Debug, Default)]
struct ScriptNeeds(Vec<u64>);

const _: () = assert!(size_of::<Session>() == SESSION_BYTES);

impl Session {
    /// The session of a new client, which is the default user.
    pub fn new(record: Arc<ClientRecord>, users: &UserRegistry) -> Self {
        let mut session = Self {
            record,
            db: 0,
            resp3: false,
            subscribed: false,
            watches_requests: false,
            authenticated: false,
            no_touch: false,
            awaits_shutdown: false,
            reply_mode: ReplyMode::On,
            transaction: None,
            watched: None,
            tracking: None,
            written: None,
            script_needs: None,
            user: Arc::clone(users.read().default_user()),
            users_seen: RESTRICTED,
        };
        session.begin_as_default(users);
        session
    }

    /// Whether none of its requests could be denied, so that there is nothing to check.
    #[inline]
    pub(crate) fn is_free(&self, users: &UserRegistry) -> bool {
        self.users_seen == users.generation()
    }

    /// The generation of users as of which it knows its rules.
    #[inline]
    pub(crate) fn users_generation(&self) -> u64 {
        self.users_seen & !RESTRICTED
    }

    /// Whether it knows its current rules.
    pub(crate) fn knows(&self, users: &UserRegistry) -> bool {
        self.users_generation() == users.generation()
    }

    /// Its user.
    pub fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// Follows a change of its user. Returns false if the user is gone, or has lost a channel that
    /// the client is subscribed to: then the client must be closed, and may not become another
    /// user, because the thread that changes this one would not find it.
    pub(crate) fn follow_users(&mut self, users: &UserRegistry) -> bool {
        let seen = users.generation_to_follow();
        if self.users_generation() == seen {
            return true;
        }
        let user = users.find_same(self.user.name()).filter(|user| !self.loses_channels(user));
        let Some(user) = user else { return false };
        self.become_user(user, seen, users);
        true
    }

    /// Whether the changed `user` denies some of its subscriptions. A user that was allowed no
    /// channel before has none to lose, as in Redis.
    fn loses_channels(&self, user: &User) -> bool {
        self.subscribed
            && self.user.has_channels()
            && !self.user.has_same_channels(user)
            && self.record.exceeds(user)
    }

    /// Makes the client run as a user to which it has authenticated, as of a generation.
    pub(crate) fn log_in(&mut self, user: Arc<User>, seen: u64, users: &UserRegistry) {
        self.authenticated = true;
        self.record.set_user(&user);
        self.become_user(user, seen, users);
    }

    fn become_user(&mut self, user: Arc<User>, seen: u64, users: &UserRegistry) {
        let is_free = user.is_unrestricted()
            && !self.must_authenticate(users)
            && !self.is_in_subscribed_mode()
            && !self.watches_requests
            && !self.record.has(flag::RESERVED);
        self.user = user;
        self.users_seen = if is_free { seen } else { seen | RESTRICTED };
    }

    /// Whether it watches all requests: as in Redis it may not use keys itself.
    pub(crate) fn watches_requests(&self) -> bool {
        self.watches_requests
    }

    /// Ends the effect of CLIENT CACHING.
    pub(crate) fn end_announced(&mut self) {
        if let Some(state) = &mut self.tracking {
            state.end_announced();
        }
    }

    pub(crate) fn is_subscribed(&self) -> bool {
        self.subscribed
    }

    /// Whether it may only send the few commands of clients that are subscribed and speak RESP2:
    /// they could not tell replies from messages.
    #[inline]
    pub fn is_in_subscribed_mode(&self) -> bool {
        self.subscribed && !self.resp3
    }

    /// Sets whether it has subscriptions, and whether it watches all requests.
    pub(crate) fn set_subscribed(
        &mut self,
        subscribed: bool,
        watches_requests: bool,
        users: &UserRegistry,
    ) {
        self.subscribed = subscribed;
        self.watches_requests = watches_requests;
        self.look_at_restrictions(users);
    }

    /// Makes a client beyond `maxclients` an ordinary one.
    pub(crate) fn leave_reserve(&mut self, users: &UserRegistry) {
        self.record.set_flag(flag::RESERVED, false);
        self.look_at_restrictions(users);
    }

    /// Finds out again whether some request of it could be denied.
    fn look_at_restrictions(&mut self, users: &UserRegistry) {
        let (user, seen) = (Arc::clone(&self.user), self.users_generation());
        self.become_user(user, seen, users);
    }

    fn begin_as_default(&mut self, users: &UserRegistry) {
        let seen = users.generation_to_follow();
        let user = Arc::clone(users.read().default_user());
        self.authenticated = user.is_enabled() && user.needs_no_password();
        self.record.set_user(&user);
        self.become_user(user, seen, users);
    }

    /// Makes the client run as the default user without authentication: its own user is gone, and
    /// it is closed when its command ends.
    pub(crate) fn lose_user(&mut self, users: &UserRegistry) {
        self.begin_as_default(users);
        self.authenticated = false;
    }

    /// Whether it has authenticated, or did not need to when it connected.
    pub fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// Whether it must authenticate before it may do anything else. A client that never did may go
    /// on once the password has been removed.
    #[inline]
    pub fn must_authenticate(&self, users: &UserRegistry) -> bool {
        !self.authenticated && !users.is_open()
    }

    /// Selects a database.
    pub fn select(&mut self, db: usize) {
        self.db = db;
        self.record.db.store(u32::try_from(db).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// Makes its reads count as uses of keys, or not.
    pub fn set_no_touch(&mut self, on: bool) {
        self.no_touch = on;
        self.record.set_flag(flag::NO_TOUCH, on);
    }

    /// The hashes of the undeclared keys for which the script of its request has begun again.
    #[inline]
    pub(crate) fn script_needs(&self) -> &[u64] {
        self.script_needs.as_ref().map_or(&[], |needs| &needs.0)
    }

    /// The script of its request begins again with the shard of this key.
    pub(crate) fn note_script_need(&mut self, hash: u64) {
        self.script_needs.get_or_insert_default().0.push(hash);
    }

    /// Its request is over, or starts from the beginning.
    #[inline]
    pub fn forget_script_needs(&mut self) {
        self.script_needs = None;
    }

    /// Resets the client, except for the facts about its library. A reply that is being skipped
    /// stays skipped.
    pub fn reset(&mut self, users: &UserRegistry) {
        self.select(0);
        self.set_resp3(false, users);
        self.set_no_touch(false);
        self.begin_as_default(users);
        if self.reply_mode != ReplyMode::Skip {
            self.reply_mode = ReplyMode::On;
        }
        self.record.set_flag(flag::NO_EVICT, false);
        self.record.edit_names(|names| names.name.clear());
    }

    /// Selects the protocol.
    pub fn set_resp3(&mut self, resp3: bool, users: &UserRegistry) {
        self.resp3 = resp3;
        self.record.set_flag(flag::RESP3, resp3);
        self.look_at_restrictions(users);
    }
}
