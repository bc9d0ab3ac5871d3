//! The users of a server, as all threads share them.
//!
//! A session keeps the user that it runs as. Users change rarely, so that a session looks its user
//! up again only when the generation has changed, which costs a command one relaxed load. A command
//! that changes a user waits for the commands inside the gate before it replies
//! ([`AfterGrace`](crate::AfterGrace)); later commands have passed the gate after the change and
//! see the new generation.
//!
//! Only the main thread changes users.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use acl::log::AclLog;
use acl::{CommandIndex, EditError, RuleContext, User, Users};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use crate::config::Config;

/// The users of a server.
#[derive(Debug)]
pub struct UserRegistry {
    users: RwLock<Users>,
    /// The commands as rules see them.
    commands: &'static CommandIndex,
    generation: AtomicU64,
    /// Clients need not authenticate: the default user is enabled and has no password.
    open: AtomicBool,
    /// The log of denials.
    pub log: Mutex<AclLog>,
}

impl UserRegistry {
    /// Only the default user, with the password of the configuration.
    pub(crate) fn with_commands(commands: &'static CommandIndex, config: &Config) -> Self {
        let users = Users::new(context(commands, config));
        let registry = Self {
            users: RwLock::new(users),
            commands,
            generation: AtomicU64::new(0),
            open: AtomicBool::new(true),
            log: Mutex::default(),
        };
        registry.set_default_password(&config.requirepass);
        registry
    }

    /// The context in which rules of users are read.
    pub fn context_of(&self, config: &Config) -> RuleContext<'static> {
        context(self.commands, config)
    }

    /// A number that changes with the users. A thread sees every change that was answered before it
    /// entered the gate.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// The same, before looking up a user: that user is not older than the number.
    pub(crate) fn generation_to_follow(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether clients need not authenticate.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// The users of this moment.
    pub fn read(&self) -> RwLockReadGuard<'_, Users> {
        self.users.read()
    }

    /// A user by its name.
    pub fn find(&self, name: &[u8]) -> Option<Arc<User>> {
        self.users.read().find(name).cloned()
    }

    /// The current form of the user with this very name; see [`Users::find_same`].
    pub(crate) fn find_same(&self, name: &Arc<[u8]>) -> Option<Arc<User>> {
        self.users.read().find_same(name).cloned()
    }

    /// Changes users, which counts for all commands that begin from now on.
    fn edit<T>(&self, edit: impl FnOnce(&mut Users) -> T) -> T {
        let result = {
            let mut users = self.users.write();
            let result = edit(&mut users);
            let default = users.default_user();
            let open = default.is_enabled() && default.needs_no_password();
            self.open.store(open, Ordering::Relaxed);
            result
        };
        self.generation.fetch_add(1, Ordering::Release);
        result
    }

    /// The user that the words of ACL SETUSER make of the one with this name, or of a new one.
    /// Nothing is locked meanwhile, however many words there are. The caller [puts](Self::put) it
    /// in the place of the old one.
    ///
    /// # Errors
    /// The first word that is wrong.
    pub(crate) fn edited(
        &self,
        name: &[u8],
        words: &[&[u8]],
        context: RuleContext<'_>,
    ) -> Result<User, EditError> {
        match self.find(name) {
            Some(user) => user.edited(words, context),
            None => User::new(name, context).edited(words, context),
        }
    }

    /// Adds a user, or puts it in the place of the one with its name, which it returns.
    pub(crate) fn put(&self, user: User) -> Option<Arc<User>> {
        self.edit(|users| users.put(user))
    }

    /// Removes users, but not the default user. Returns how many there were.
    pub(crate) fn remove(&self, names: &[&[u8]]) -> usize {
        self.edit(|users| names.iter().filter(|name| users.remove(name)).count())
    }

    /// Replaces all users by others. A user with the same name is the same user.
    pub(crate) fn replace(&self, new: &mut Users) {
        self.edit(|users| {
            new.follow(users);
            std::mem::swap(users, new);
        });
    }

    /// Makes a password the only one of the default user; an empty one opens the server.
    pub(crate) fn set_default_password(&self, password: &[u8]) {
        self.edit(|users| drop(users.put(users.default_user().with_password(password))));
    }
}

fn context(commands: &'static CommandIndex, config: &Config) -> RuleContext<'static> {
    RuleContext { commands, all_channels: config.acl.pubsub_default.allows_all() }
}
