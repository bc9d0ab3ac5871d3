//! Transfers between accounts by transactions and scripts: every reader sees the same sum.

use test_support::Value;

use crate::actor::act;
use crate::connection::Connection;
use crate::fault::Fault;
use crate::trouble::{Trouble, expect, wrong};
use crate::world::World;

const ACCOUNTS: usize = 8;
const SUM: i64 = 1000;

const TRANSFER: &str = "redis.call('DECRBY', KEYS[1], ARGV[1]) \
                        redis.call('INCRBY', KEYS[2], ARGV[1]) return redis.status_reply('OK')";
/// The sum of keys that the script does not declare.
const LOOK: &str = "local sum = 0 for i = 0, ARGV[1] - 1 do \
                    sum = sum + redis.call('GET', 'account:' .. i) end return sum";

/// Gives the accounts their sum, before the first audit.
pub fn open_accounts(connection: &mut Connection) -> Result<(), Trouble> {
    for number in 0..ACCOUNTS {
        let first = if number == 0 { SUM.to_string() } else { "0".to_owned() };
        expect(&connection.ask(&["SET", &account(number), &first])?, "OK")?;
    }
    Ok(())
}

fn account(number: usize) -> String {
    format!("account:{number}")
}

/// Transfers until the run is over.
pub fn transfer(world: &World, number: usize) {
    act(world, &format!("teller {number}"), number % 2 == 1, |connection| {
        let from = fastrand::usize(0..ACCOUNTS);
        let to = (from + fastrand::usize(1..ACCOUNTS)) % ACCOUNTS;
        let (from, to) = (account(from), account(to));
        let amount = fastrand::u32(1..100).to_string();
        if world.plants(Fault::TornTransfer, 50) {
            connection.ask(&["DECRBY", &from, &amount])?;
            return Ok(());
        }
        match fastrand::u32(0..4) {
            0 => transfer_watched(world, connection, [&from, &to], &amount),
            1 => {
                let reply = connection.ask(&["EVAL", TRANSFER, "2", &from, &to, &amount])?;
                world.met("transfers by scripts", 1);
                expect(&reply, "OK")
            }
            _ => {
                let replies = connection.ask_all(&[
                    &["MULTI"],
                    &["DECRBY", &from, &amount],
                    &["INCRBY", &to, &amount],
                    &["EXEC"],
                ])?;
                world.met("transfers by transactions", 1);
                match replies.last().map(Value::elements) {
                    Some([_, _]) => Ok(()),
                    _ => wrong(format!("EXEC is {}", replies[3])),
                }
            }
        }
    });
}

/// Reads, then writes unless another client was faster.
fn transfer_watched(
    world: &World,
    connection: &mut Connection,
    [from, to]: [&str; 2],
    amount: &str,
) -> Result<(), Trouble> {
    expect(&connection.ask(&["WATCH", from, to])?, "OK")?;
    let balances = connection.ask(&["MGET", from, to])?;
    let [Some(first), Some(second)] = [0, 1].map(|at| balances.elements().get(at)?.integer())
    else {
        return wrong(format!("MGET is {balances}"));
    };
    let amount: i64 = amount.parse().unwrap_or(1);
    let (first, second) = ((first - amount).to_string(), (second + amount).to_string());
    let replies = connection.ask_all(&[
        &["MULTI"],
        &["SET", from, &first],
        &["SET", to, &second],
        &["EXEC"],
    ])?;
    let met = match &replies[3] {
        Value::Null(_) => "transfers that lost against another client",
        Value::Many(_, _) => "transfers of watched accounts",
        other => return wrong(format!("EXEC is {other}")),
    };
    world.met(met, 1);
    Ok(())
}

/// Checks the sum until the run is over.
pub fn audit(world: &World, number: usize) {
    let names: Vec<String> = (0..ACCOUNTS).map(account).collect();
    let mut mget = vec!["MGET"];
    mget.extend(names.iter().map(String::as_str));
    let count = ACCOUNTS.to_string();
    act(world, &format!("auditor {number}"), number % 2 == 1, |connection| {
        let balances = match fastrand::u32(0..3) {
            0 => {
                let gets: Vec<[&str; 2]> = names.iter().map(|name| ["GET", name]).collect();
                let mut requests: Vec<&[&str]> = vec![&["MULTI"]];
                requests.extend(gets.iter().map(|get| &get[..]));
                requests.push(&["EXEC"]);
                connection.ask_all(&requests)?.pop().unwrap_or(Value::Null(b'_'))
            }
            1 => {
                let sum = connection.ask(&["EVAL", LOOK, "0", &count])?;
                Value::Many(b'*', vec![sum])
            }
            _ => connection.ask(&mget)?,
        };
        let sum: Option<i64> = balances.elements().iter().map(Value::integer).sum();
        world.met("audits", 1);
        match sum {
            Some(SUM) => Ok(()),
            _ => wrong(format!("the sum of {balances} is not {SUM}")),
        }
    });
}
