//! Two servers that get the same requests.

use std::collections::BTreeSet;
use std::io;

use test_support::Value;

use crate::found::Lost;
use crate::generate::{Command, Version, version};
use crate::peer::Unanswered;
use crate::{ConnectionName, Peer, Request, Step, request, rules};

/// The two servers.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The server under test.
    pub subject: Peer<'a>,
    /// The server that it is compared with.
    pub reference: Peer<'a>,
    /// The version of Redis with which the reference is compatible.
    pub version: Version,
    /// Whether both reply when fields of hashes expire.
    pub(crate) hash_field_times: bool,
    /// Whether both know DUMP and RESTORE.
    pub(crate) exchanges: bool,
    /// Whether the reference is Valkey.
    pub(crate) is_valkey: bool,
    /// Commands that only one server has in its categories, since the other does not know them.
    strangers: BTreeSet<Vec<u8>>,
}

impl<'a> Pair<'a> {
    /// Connects two servers into a pair and asks for their versions.
    ///
    /// # Errors
    /// When one does not reply.
    pub fn new(subject: Peer<'a>, reference: Peer<'a>) -> io::Result<Self> {
        let mut pair = Self {
            subject,
            reference,
            version: [0; 3],
            hash_field_times: false,
            exchanges: false,
            is_valkey: false,
            strangers: BTreeSet::new(),
        };
        let info = pair.reference.ask(ConnectionName::Observer, &request(&["INFO", "server"]))?;
        let text = String::from_utf8_lossy(info.bytes().unwrap_or_default()).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("redis_version:"));
        pair.version = version(line.unwrap_or_default());
        pair.is_valkey = text.lines().any(|line| line.starts_with("valkey_version:"));
        // Another Weft knows the commands of later versions as well.
        if text.lines().any(|line| line.starts_with("weft_version:")) {
            pair.version = [u32::MAX; 3];
        }
        let asked = [request(&["COMMAND", "INFO", "hpexpiretime"])];
        let (subject, reference) = pair.both(&asked).map_err(|lost| lost.error())?;
        pair.hash_field_times = is_known(&subject[0]) && is_known(&reference[0]);
        let asked = [
            request(&["COMMAND", "INFO", "restore"]),
            // Without this, Valkey reads no payload of Redis; other servers do not know the
            // parameter.
            request(&["CONFIG", "SET", "rdb-version-check", "relaxed"]),
        ];
        let (subject, reference) = pair.both(&asked).map_err(|lost| lost.error())?;
        pair.exchanges = is_known(&subject[0]) && is_known(&reference[0]);
        pair.strangers = pair.commands_of_one().map_err(|lost| lost.error())?;
        Ok(pair)
    }

    fn commands_of_one(&mut self) -> Result<BTreeSet<Vec<u8>>, Lost> {
        let (categories, _) = self.both(&[request(&["ACL", "CAT"])])?;
        let category = |name: &Value| {
            let name = name.bytes().map(<[u8]>::to_vec);
            request(&["ACL", "CAT"]).into_iter().chain(name).collect()
        };
        let asked: Vec<Request> =
            categories.iter().flat_map(Value::elements).map(category).collect();
        let (subject, reference) = self.both(&asked)?;
        let names = |replies: &[Value]| {
            let names = replies.iter().flat_map(Value::elements).filter_map(Value::bytes);
            names.map(<[u8]>::to_vec).collect::<BTreeSet<_>>()
        };
        Ok(&names(&subject) ^ &names(&reference))
    }

    /// A reply without the commands that only one server knows, if it is a list of commands.
    pub(crate) fn comparable(&self, request: &Request, reply: Value) -> Value {
        match reply {
            Value::Many(marker, mut elements) if rules::name(request) == "acl|cat" => {
                let is_shared =
                    |name: &Value| name.bytes().is_none_or(|name| !self.strangers.contains(name));
                elements.retain(is_shared);
                Value::Many(marker, elements)
            }
            reply => reply,
        }
    }

    /// The commands that both know, and the names of the others.
    ///
    /// # Errors
    /// When one does not reply.
    pub fn known(
        &mut self,
        commands: Vec<Command>,
    ) -> io::Result<(Vec<Command>, Vec<&'static str>)> {
        let asked: Vec<Request> =
            commands.iter().map(|command| request(&["COMMAND", "INFO", command.name])).collect();
        let (subject, reference) = self.both(&asked).map_err(|lost| lost.error())?;
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for (command, (ours, theirs)) in commands.into_iter().zip(subject.iter().zip(&reference)) {
            match is_known(ours) && is_known(theirs) {
                true => known.push(command),
                false => unknown.push(command.name),
            }
        }
        Ok((known, unknown))
    }

    /// Sends the same requests of the observer to both at the same time.
    ///
    /// # Errors
    /// When one does not reply; the subject takes precedence over the reference.
    pub fn both(&mut self, requests: &[Request]) -> Result<(Vec<Value>, Vec<Value>), Lost> {
        self.each(ConnectionName::Observer, requests, requests)
    }

    /// Sends the steps that open a round to both.
    ///
    /// # Errors
    /// As for `both`; the position counts the steps.
    pub fn open(&mut self, opening: &[Step]) -> Result<(), Lost> {
        for (at, step) in opening.iter().enumerate() {
            let request = std::slice::from_ref(&step.request);
            self.each(step.client, request, request).map_err(|lost| Lost { at, ..lost })?;
        }
        Ok(())
    }

    /// Sends requests to the subject and others to the reference at the same time.
    ///
    /// # Errors
    /// As for `both`.
    pub fn each(
        &mut self,
        client: ConnectionName,
        to_subject: &[Request],
        to_reference: &[Request],
    ) -> Result<(Vec<Value>, Vec<Value>), Lost> {
        let (subject, reference) = (&mut self.subject, &mut self.reference);
        let (ours, theirs) = std::thread::scope(|scope| {
            let theirs = scope.spawn(|| reference.ask_all(client, to_reference));
            let ours = subject.ask_all(client, to_subject);
            (ours, theirs.join())
        });
        let theirs = theirs.unwrap_or_else(|_| {
            let source = io::Error::other("its replies could not be read");
            Err(Unanswered { answered: 0, source })
        });
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => Ok((ours, theirs)),
            (Err(lost), _) => Err(Lost::new(&self.subject.name, &lost)),
            (_, Err(lost)) => Err(Lost::new(&self.reference.name, &lost)),
        }
    }
}

/// Whether COMMAND INFO has a row.
fn is_known(reply: &Value) -> bool {
    reply.elements().iter().any(|row| !row.elements().is_empty())
}
