//! Models of the hand-over: clients with requests for the main thread, kills from anywhere, and
//! threads that come and leave meanwhile.

use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread::{self, JoinHandle};

use crate::moves::{Main, Record};
use crate::shim::Fault;
use crate::{fails_with, holds};

/// Schedules of each kind for a model that holds.
const SCHEDULES: usize = 800;
/// The most schedules until a planted fault is found.
const SCHEDULES_TO_FAIL: usize = 5000;

/// The main thread handles a few messages, or none.
fn turns(main: &mut Main) {
    for _ in 0..thread_rng().gen_range(0..4) {
        main.turn(false);
    }
}

/// Clients are killed while the main thread continues.
fn kill(main: &Main, records: &[&Arc<Record>]) -> JoinHandle<()> {
    let world = Arc::clone(&main.world);
    let records: Vec<_> = records.iter().map(|record| Arc::clone(record)).collect();
    thread::spawn(move || records.iter().for_each(|record| world.kill(record)))
}

/// The killer's messages must have been sent before the server ends.
fn join(main: &mut Main, killer: JoinHandle<()>) {
    turns(main);
    killer.join().expect("it ends");
}

/// Clients go to the main thread and back, two of them are killed on the way.
fn there_and_back() {
    let mut main = Main::new();
    main.set_threads(3);
    let first = main.accept(2);
    let second = main.accept(2);
    main.accept(1);
    let killer = kill(&main, &[&first, &second]);
    main.unpause();
    join(&mut main, killer);
    main.end();
}

/// Threads leave one after another, and faster than they can, while their clients are on the main
/// thread.
fn fewer_threads() {
    let mut main = Main::new();
    main.set_threads(4);
    let first = main.accept(1);
    main.accept(2);
    main.accept(0);
    turns(&mut main);
    let killer = kill(&main, &[&first]);
    main.set_threads(3);
    turns(&mut main);
    main.set_threads(1);
    main.unpause();
    turns(&mut main);
    join(&mut main, killer);
    main.end();
}

/// Threads start, take their share and leave again before the others have given theirs.
fn more_threads_and_fewer() {
    let mut main = Main::new();
    main.accept(1);
    let second = main.accept(0);
    turns(&mut main);
    main.set_threads(2);
    main.accept(1);
    main.accept(0);
    turns(&mut main);
    let killer = kill(&main, &[&second]);
    main.set_threads(3);
    turns(&mut main);
    main.set_threads(2);
    turns(&mut main);
    main.set_threads(1);
    join(&mut main, killer);
    main.end();
}

/// Threads are parked and resumed while their clients are on the main thread, killed and accepted.
fn parked_threads() {
    let mut main = Main::new();
    main.set_threads(4);
    let first = main.accept(2);
    main.accept(2);
    main.accept(1);
    turns(&mut main);
    let killer = kill(&main, &[&first]);
    main.set_active(2);
    main.accept(1);
    turns(&mut main);
    main.set_active(3);
    main.unpause();
    turns(&mut main);
    main.set_active(2);
    for _ in 0..40 {
        main.turn(false);
        thread::yield_now();
    }
    join(&mut main, killer);
    main.end();
}

/// Threads leave while others are parked, and start while they are.
fn parked_threads_and_fewer() {
    let mut main = Main::new();
    main.set_threads(4);
    let first = main.accept(1);
    main.accept(2);
    turns(&mut main);
    let killer = kill(&main, &[&first]);
    main.set_active(2);
    turns(&mut main);
    main.set_threads(3);
    turns(&mut main);
    main.set_active(2);
    main.set_threads(4);
    main.unpause();
    turns(&mut main);
    join(&mut main, killer);
    main.end();
}

#[test]
fn parked_threads_have_no_clients() {
    holds(SCHEDULES, parked_threads);
}

#[test]
fn parked_threads_leave_and_come() {
    holds(SCHEDULES, parked_threads_and_fewer);
}

#[test]
fn a_parked_thread_that_keeps_those_away_is_found() {
    let fault = Fault::ParkedInName;
    fails_with(fault, "parked thread kept a client", SCHEDULES_TO_FAIL, parked_threads);
}

#[test]
fn clients_given_to_a_parked_thread_are_found() {
    let fault = Fault::GivesToTheParked;
    fails_with(fault, "moves without end", SCHEDULES_TO_FAIL, parked_threads);
}

#[test]
fn clients_come_back_executed_or_closed() {
    holds(SCHEDULES, there_and_back);
}

#[test]
fn threads_leave_without_clients() {
    holds(SCHEDULES, fewer_threads);
}

#[test]
fn threads_come_share_and_leave() {
    holds(SCHEDULES, more_threads_and_fewer);
}

#[test]
fn a_kill_forgotten_on_return_is_found() {
    let fault = Fault::KillForgottenOnReturn;
    fails_with(fault, "was killed and lives", SCHEDULES_TO_FAIL, there_and_back);
}

#[test]
fn a_kill_forgotten_on_adoption_is_found() {
    let fault = Fault::KillForgottenOnAdoption;
    fails_with(fault, "was killed and lives", SCHEDULES_TO_FAIL, fewer_threads);
}

#[test]
fn a_thread_that_leaves_without_those_away_is_found() {
    fails_with(Fault::LeavesClientsOnMain, "is lost", SCHEDULES_TO_FAIL, fewer_threads);
}

#[test]
fn a_thread_that_leaves_with_clients_is_found() {
    fails_with(Fault::KeepsTheOthers, "kept a client", SCHEDULES_TO_FAIL, fewer_threads);
}

#[test]
fn threads_that_choose_for_themselves_lose_clients() {
    fails_with(Fault::EveryoneChooses, "is lost", SCHEDULES_TO_FAIL, more_threads_and_fewer);
}

#[test]
fn requests_out_of_order_are_found() {
    fails_with(Fault::NewestFirst, "out of order", SCHEDULES_TO_FAIL, there_and_back);
}
