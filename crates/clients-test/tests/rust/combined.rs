//! The cases that every language has: `cases/combined.txt` says what they assert.

use std::collections::BTreeMap;
use std::thread;

use clients_test::case_names;
use redis::{Client, Connection, IntoConnectionInfo};

use crate::check::{ask, equal};
use crate::{scripts, transactions, users};

/// A case and its name in the list.
pub type Case = (&'static str, fn(&mut Session));

/// What a case works with.
pub struct Session<'a> {
    pub r: &'a mut Connection,
    /// Makes further connections of the protocol under test.
    pub client: &'a Client,
}

impl Session<'_> {
    pub fn another(&self) -> Connection {
        self.client.get_connection().unwrap()
    }

    /// A client that logs in as the user worker.
    pub fn login(&self, password: &str) -> Client {
        let info = self.client.get_connection_info().clone();
        let settings = info.redis_settings().clone();
        let settings = settings.set_username("worker").set_password(password);
        Client::open(info.set_redis_settings(settings).into_connection_info().unwrap()).unwrap()
    }

    /// Runs `work` in as many threads, each with a connection.
    pub fn together(&self, count: usize, work: impl Fn(usize, &mut Connection) + Sync) {
        let work = &work;
        thread::scope(|scope| {
            for number in 0..count {
                let mut own = self.another();
                scope.spawn(move || work(number, &mut own));
            }
        });
    }
}

pub fn run(r: &mut Connection, client: &Client) {
    let all = transactions::CASES.iter().chain(scripts::CASES).chain(users::CASES);
    let cases: BTreeMap<&str, fn(&mut Session)> = all.copied().collect();
    let names = case_names("combined.txt");
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    equal("the cases of the list", cases.keys().copied().collect::<Vec<_>>(), sorted);
    for name in &names {
        ask::<()>(r, "FLUSHALL");
        cases[name.as_str()](&mut Session { r, client });
        println!("ok case {name}");
    }
    ask::<()>(r, "FLUSHALL");
}
