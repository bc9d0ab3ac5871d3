//! How long clients of slow requests are held until a thread stops all others, in simulated time:
//! each client sends one request after another without a gap, on a thread of its own, and the
//! waiting thread looks once a millisecond.

#![allow(clippy::expect_used, clippy::panic)]

use std::collections::VecDeque;

use base::random::Random;
use sync::gate::{Gate, Pass};

use super::shim::CLOSE_US;
use super::stop_waits::{ATTEMPTS_MAX, AttemptWait, PATIENT_ATTEMPTS_MAX, Stoppers};

/// Requests from here on are slow, in milliseconds.
const SLOW_MS: u64 = 5;
/// The most milliseconds until the threads are stopped: no case comes near it.
const MS_MAX: u64 = 1_000_000;

/// The clients of a thread, mostly one, and the thread's pass.
struct SimulatedClient {
    pass: Pass,
    /// How long its requests take, in turn.
    takes_ms: Vec<u64>,
    begun: usize,
    /// Of the running request.
    left_ms: u64,
    /// Of the last request of each client, if it was slow.
    slow_us: VecDeque<u32>,
    /// Each request is that of a new connection.
    is_new: bool,
    held_ms: u64,
    held_ms_max: u64,
}

impl SimulatedClient {
    /// Its first request has run for a part of its time.
    fn new(gate: &Gate, takes_ms: &[u64], ran_ms: u64) -> Self {
        let pass = gate.register().expect("there is a slot for each client");
        let (takes_ms, left_ms) = (takes_ms.to_vec(), takes_ms[0] - ran_ms);
        pass.enter();
        let (slow_us, is_new, held_ms, held_ms_max) = (VecDeque::from([0]), false, 0, 0);
        Self { pass, takes_ms, begun: 1, left_ms, slow_us, is_new, held_ms, held_ms_max }
    }

    /// A millisecond passes.
    fn pass_ms(&mut self, now_us: u64, stoppers: &Stoppers) {
        if self.pass.is_inside() {
            self.left_ms -= 1;
            if self.left_ms > 0 {
                return;
            }
            self.pass.leave();
            let took_ms = self.takes_ms[(self.begun - 1) % self.takes_ms.len()];
            let is_slow = took_ms >= SLOW_MS && !self.is_new;
            self.slow_us[0] = if is_slow { took_ms as u32 * 1000 } else { 0 };
            self.slow_us.rotate_left(1);
        }
        let may_begin = |slow_us: &u32| *slow_us == 0 || !stoppers.holds(*slow_us, || now_us);
        let Some(next) = self.slow_us.iter().position(may_begin) else {
            self.held_ms += 1;
            self.held_ms_max = self.held_ms_max.max(self.held_ms);
            return;
        };
        self.slow_us.rotate_left(next);
        self.held_ms = 0;
        self.left_ms = self.takes_ms[self.begun % self.takes_ms.len()];
        self.begun += 1;
        self.pass.enter();
    }

    fn ends_within(&self, us: u64) -> bool {
        !self.pass.is_inside() || self.left_ms * 1000 <= us
    }
}

/// Tries until all clients are stopped. Returns how often, and after how many milliseconds.
fn stop(gate: &Gate, clients: &mut [SimulatedClient]) -> (u32, u64) {
    let (stoppers, mut attempts) = (Stoppers::new(), 0);
    let mut wait: Option<AttemptWait> = None;
    for ms in 0..MS_MAX {
        let now_us = MS_MAX + ms * 1000;
        if let Some(wait) = &wait {
            wait.go_on(now_us, &stoppers);
        }
        if wait.as_mut().is_none_or(|wait| wait.period.is_over()) {
            attempts += 1;
            let are_patient = attempts <= PATIENT_ATTEMPTS_MAX;
            if !are_patient || clients.iter().all(|client| client.ends_within(CLOSE_US)) {
                return (attempts, ms);
            }
            let begin = || gate.grace_period();
            wait = Some(AttemptWait::begin(attempts, now_us, &stoppers, begin));
        }
        clients.iter_mut().for_each(|client| client.pass_ms(now_us, &stoppers));
    }
    panic!("the threads were never stopped");
}

#[test]
fn clients_of_short_requests_go_on_beside_slow_commands_that_overlap() {
    for [ran_a, ran_b] in [[0, 1000], [1999, 999], [500, 1700], [3, 4]] {
        let gate = Gate::new(4);
        let client = |takes_ms, ran_ms| SimulatedClient::new(&gate, &[takes_ms], ran_ms);
        let mut clients = [client(2000, ran_a), client(2000, ran_b), client(8, 1), client(19, 11)];
        let (attempts, ms) = stop(&gate, &mut clients);
        assert!(attempts <= ATTEMPTS_MAX + 3, "{attempts} attempts");
        // The slow commands that run in each of the first grace periods, and a short end.
        assert!(ms <= u64::from(ATTEMPTS_MAX + 1) * 2000 + 100, "{ms} ms");
        for client in &clients[2..] {
            let took_ms = client.takes_ms[0];
            let held_ms = client.held_ms_max;
            // In the second and third grace period.
            assert!(held_ms > 0 && held_ms <= 8 * took_ms + 6, "{held_ms} ms, took {took_ms}");
            assert!(client.begun as u64 * took_ms >= ms * 9 / 10, "it went on: {}", client.begun);
        }
        // These two hold each other up.
        assert!(clients[..2].iter().all(|client| client.held_ms_max <= 2000));
    }
}

/// Requests of all lengths overlap in all ways: the gate is never closed for longer than it may be.
#[test]
fn threads_are_stopped_in_the_end_beside_slow_commands_of_all_lengths() {
    let mut random = Random::new(11);
    for case in 0..60 {
        let gate = Gate::new(12);
        let mut clients: Vec<_> = (0..12)
            .map(|_| {
                let octave = SLOW_MS << random.below(11);
                let takes_ms = octave + random.below(octave);
                SimulatedClient::new(&gate, &[takes_ms], random.below(takes_ms))
            })
            .collect();
        let (attempts, _) = stop(&gate, &mut clients);
        assert!(attempts <= PATIENT_ATTEMPTS_MAX, "case {case}: {attempts} attempts");
        for client in &clients {
            let (held_ms, took_ms) = (client.held_ms_max, client.takes_ms[0]);
            let limit_ms = if took_ms < SLOW_MS { 0 } else { 40 * took_ms + 16 };
            assert!(held_ms <= limit_ms, "case {case}: {held_ms} ms, took {took_ms}");
        }
    }
}

/// Threads have several clients. Most of their requests take 7 ms, and some a second.
#[test]
fn threads_are_stopped_soon_beside_clients_with_requests_of_all_lengths() {
    let mut random = Random::new(5);
    for case in 0..60 {
        let gate = Gate::new(5);
        let mut takes_ms = || match random.below(50) {
            0 => 500 + random.below(1000),
            _ => 7,
        };
        let mut clients: Vec<_> = (0..5)
            .map(|_| {
                let takes_ms: Vec<u64> = (0..1000).map(|_| takes_ms()).collect();
                let slow_us = VecDeque::from([0; 8]);
                SimulatedClient { slow_us, ..SimulatedClient::new(&gate, &takes_ms, 0) }
            })
            .collect();
        let (attempts, _) = stop(&gate, &mut clients);
        assert!(attempts <= 12, "case {case}: {attempts} attempts");
    }
}

/// Short requests between the slow ones do not help their clients.
#[test]
fn clients_whose_slow_commands_alternate_with_short_ones_are_held() {
    let gate = Gate::new(2);
    let client = |ran_ms| SimulatedClient::new(&gate, &[2000, 1], ran_ms);
    let (attempts, _) = stop(&gate, &mut [client(0), client(1000)]);
    assert!(attempts <= ATTEMPTS_MAX + 2, "{attempts} attempts");
}

#[test]
fn beside_slow_commands_of_new_clients_the_gate_stays_closed_in_the_end() {
    let gate = Gate::new(2);
    let new =
        |ran_ms| SimulatedClient { is_new: true, ..SimulatedClient::new(&gate, &[2000], ran_ms) };
    let mut clients = [new(0), new(1000)];
    let (attempts, ms) = stop(&gate, &mut clients);
    assert_eq!(attempts, PATIENT_ATTEMPTS_MAX + 1);
    assert!(ms <= u64::from(attempts) * 2002, "{ms} ms");
}
