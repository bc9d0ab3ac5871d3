//! All users by their names. The default user is always among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::EditError;
use crate::rules::RuleContext;
use crate::user::{DEFAULT_USER, User};

/// All users.
#[derive(Clone, Debug)]
pub struct Users {
    by_name: BTreeMap<Box<[u8]>, Arc<User>>,
    /// The default user.
    default: Arc<User>,
}

impl Users {
    /// Only the default user, unrestricted.
    pub fn new(context: RuleContext<'_>) -> Self {
        let default = Arc::new(User::unrestricted_default(context));
        let by_name = BTreeMap::from([(DEFAULT_USER.into(), Arc::clone(&default))]);
        Self { by_name, default }
    }

    /// The user of new connections.
    pub fn default_user(&self) -> &Arc<User> {
        &self.default
    }

    /// A user by its name.
    pub fn find(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.by_name.get(name)
    }

    /// The current version of the user with exactly this name object, so not a user that was added
    /// under the name later. The default user is never removed.
    pub fn find_same(&self, name: &Arc<[u8]>) -> Option<&Arc<User>> {
        let is_same = |user: &&Arc<User>| user.is_default() || Arc::ptr_eq(user.name(), name);
        self.find(name).filter(is_same)
    }

    /// Takes over the identities of users in `before` that exist in both.
    pub fn follow(&mut self, before: &Self) {
        for user in self.by_name.values_mut() {
            if let Some(before) = before.find(user.name()) {
                Arc::make_mut(user).follow(before);
            }
        }
        if let Some(default) = self.by_name.get(DEFAULT_USER) {
            self.default = Arc::clone(default);
        }
    }

    /// Adds a user, or replaces the one with its name, which is returned.
    pub fn put(&mut self, user: User) -> Option<Arc<User>> {
        let user = Arc::new(user);
        if user.is_default() {
            self.default = Arc::clone(&user);
        }
        self.by_name.insert(user.name().as_ref().into(), user)
    }

    /// Adds or changes a user by the words of ACL SETUSER.
    ///
    /// # Errors
    /// The first wrong word; nothing has changed then.
    pub fn set(
        &mut self,
        name: &[u8],
        args: &[impl AsRef<[u8]>],
        context: RuleContext<'_>,
    ) -> Result<(), EditError> {
        let user = match self.find(name) {
            Some(user) => user.edited(args, context)?,
            None => User::new(name, context).edited(args, context)?,
        };
        self.put(user);
        Ok(())
    }

    /// Adds the user of a configuration file's line. It is always a new user, and may replace the
    /// default user, which exists before the first line.
    ///
    /// # Errors
    /// The first wrong word; nothing has changed then.
    pub fn add_new(
        &mut self,
        name: &[u8],
        args: &[impl AsRef<[u8]>],
        context: RuleContext<'_>,
    ) -> Result<(), EditError> {
        self.put(User::new(name, context).edited(args, context)?);
        Ok(())
    }

    /// Removes a user other than the default user. Returns whether it existed.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        name != DEFAULT_USER && self.by_name.remove(name).is_some()
    }

    /// All users by ascending name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<User>> {
        self.by_name.values()
    }
}
