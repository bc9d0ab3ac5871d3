//! ACL LOAD (<https://redis.io/docs/latest/commands/acl-load/>), ACL SAVE, and the users at start.

use std::sync::Arc;

use acl::{EditError, Users, file};
use engine::{AclError, Error, echo};
use resp::{Args, Reply};

use super::change::settle;
use crate::config::Config;
use crate::execution::node_cx::NodeCx;
use crate::execution::outcome::Outcome;
use crate::state::node::Node;
use crate::state::user_changes::Changed;

pub(super) fn load(
    cx: &mut NodeCx<'_>,
    _args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let (node, config) = with_file(cx)?;
    let loaded = cx.outside(|host| {
        let text = host.read_acl_file(&config.acl.file);
        let mut users = read(&node, &config, text)?;
        // The old users are dropped here, outside the gate: there may be very many.
        Ok(cx.commit(|| node.users.replace(&mut users)))
    });
    if !loaded.map_err(|errors: Vec<u8>| AclError::Load(echo(&errors)))? {
        cx.outcome = Outcome::Close;
        return Ok(());
    }
    settle(cx, Changed::All);
    reply.ok();
    Ok(())
}

pub(super) fn save(
    cx: &mut NodeCx<'_>,
    _args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let (node, config) = with_file(cx)?;
    let saved = cx.outside(|host| {
        let text = file::write(&node.users.read());
        host.write_acl_file(&config.acl.file, &text)
    });
    saved.map_err(|_| AclError::Save)?;
    reply.ok();
    Ok(())
}

/// The server and its configuration, which must name an ACL file.
fn with_file(cx: &NodeCx<'_>) -> Result<(Arc<Node>, Arc<Config>), AclError> {
    let node = Arc::clone(&cx.worker.node);
    let config = node.config();
    match config.acl.file.is_empty() {
        true => Err(AclError::NoFile),
        false => Ok((node, config)),
    }
}

/// Parses the users of an ACL file.
fn read(node: &Node, config: &Config, text: Result<Vec<u8>, String>) -> Result<Users, Vec<u8>> {
    let path = &config.acl.file;
    let text = text
        .map_err(|why| format!("Error loading ACLs, opening file '{path}': {why}").into_bytes())?;
    file::read(&text, path, node.users.context_of(config))
}

impl Node {
    /// Loads the users of the configuration, from its `user` lines or from the ACL file, which
    /// `read_file` reads.
    ///
    /// # Errors
    /// A message for the operator about the rules or the file.
    pub fn load_users(
        &self,
        read_file: impl FnOnce(&str) -> Result<Vec<u8>, String>,
    ) -> Result<(), String> {
        let config = self.config();
        if !config.acl.file.is_empty() {
            if !config.acl.users.is_empty() {
                return Err("The configuration names an ACL file and has 'user' lines as well. \
                            Define the users in one of the two places."
                    .to_owned());
            }
            let mut users = read(self, &config, read_file(&config.acl.file)).map_err(|errors| {
                let errors = String::from_utf8_lossy(&errors).into_owned();
                format!("Can't start because of ACL errors: {errors}")
            })?;
            self.users.replace(&mut users);
            return Ok(());
        }
        let mut users = self.users.read().clone();
        for line in &config.acl.users {
            users.add_new(&line.name, &line.rules, self.users.context_of(&config)).map_err(
                |error| {
                    let name = String::from_utf8_lossy(&line.name);
                    format!("Error in the rules of the user '{name}': {}", reason(&error))
                },
            )?;
        }
        self.users.replace(&mut users);
        Ok(())
    }
}

/// A message for the operator about wrong rules.
pub(crate) fn reason(error: &EditError) -> String {
    match error {
        EditError::Unmatched(word) => {
            let word = String::from_utf8_lossy(word);
            format!("Unmatched parenthesis in acl selector starting at '{word}'")
        }
        EditError::Word(_, error) => error.to_string(),
    }
}
