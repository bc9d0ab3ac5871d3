//! The cost of the check: `cargo test --release -p acl -- --ignored --nocapture cost`.

use std::hint::black_box;
use std::time::Instant;

use acl::AccessRequest;
use resp::{Args, Span};

use crate::table::{ROWS, user};

const ROUNDS: u32 = 5_000_000;

fn nanoseconds(rules: &str, key: &str) -> f64 {
    let user = user(rules);
    let buffer = format!("get{key}");
    let spans = [Span::new(0, 3), Span::new(3, key.len())];
    let args = Args::new(buffer.as_bytes(), &spans, &[]);
    let request = AccessRequest { index: 0, spec: &ROWS[0].0, args: &args, channels: &[] };
    let run = || {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            black_box(black_box(&user).check(black_box(&request))).expect("allowed");
        }
        start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
    };
    (0..5).map(|_| run()).fold(f64::MAX, f64::min)
}

#[test]
#[ignore = "a measurement"]
fn cost_of_the_check() {
    let commands = "+get +set +mget +strlen +copy +sort +config|get +select|0 -@admin +auth";
    let ten = |prefix: &str| (0..10).map(|n| format!("~{prefix}{n}:* ")).collect::<String>();
    for (name, rules, key) in [
        ("everything", "allcommands allkeys allchannels".to_owned(), "app:9:12345678"),
        ("all keys", format!("{commands} allkeys"), "app:9:12345678"),
        ("one pattern", format!("{commands} ~app:*"), "app:9:12345678"),
        ("the last of 10", format!("{commands} {}", ten("app:")), "app:9:12345678"),
        ("the last of 10, long", format!("{commands} {}", ten("application:")), "application:9:1"),
        ("the last of 10, read", format!("{commands} {} %R~b:*", ten("app:")), "b:9:12345678"),
        ("globs", format!("{commands} {} ~*:q:*", ten("app:[0-9]*:")), "app:3:45:q:1234567890"),
    ] {
        println!("{name}: {:.1} ns", nanoseconds(&rules, key));
    }
}
