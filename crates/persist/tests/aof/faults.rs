//! Errors at every operation: commands that were reported as durable are loaded, and all commands
//! become durable when the disk works again.

use std::io::ErrorKind;

use base::random::Random;
use persist::aof::AofError;

use crate::log::{Driver, check_prefix, position, writes_before};
use crate::simulated_disk::{Failure, Loss, SimulatedDisk};

const STEPS: u64 = 60;

/// Writes like a server that continues after errors. Returns the number of errors.
fn write_through_errors(driver: &mut Driver, seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut errors = 0;
    for _ in 0..STEPS {
        match driver.step(&mut random) {
            Ok(()) => {}
            Err(AofError::NeedsBase) => {
                let begun = driver.begin(&mut random).and_then(|()| driver.finish());
                errors += u64::from(begun.is_err());
            }
            Err(_) => errors += 1,
        }
    }
    errors
}

fn check(failure: impl Fn(u64) -> Failure, seed: u64, context: &str) {
    let whole = SimulatedDisk::new(seed);
    let (mut driver, _) = Driver::start(whole.clone()).unwrap();
    assert_eq!(write_through_errors(&mut driver, seed), 0);
    let mut failed = 0;
    for at in 3..whole.operations().len() as u64 {
        let context = format!("{context}, seed {seed}, operation {at}");
        let disk = SimulatedDisk::new(seed);
        disk.fail(failure(at));
        let Ok((mut driver, _)) = Driver::start(disk.clone()) else { continue };
        failed += u64::from(write_through_errors(&mut driver, seed) > 0);
        for loss in [Loss::Cut, Loss::Zeros] {
            let started = Driver::start(disk.after_power_loss(loss, at));
            let (_, loaded) = started.unwrap_or_else(|error| panic!("{context}: {error:?}"));
            let writes = check_prefix(&loaded, &context);
            assert!(writes >= writes_before(driver.durable), "{context}, {loss:?}: {writes}");
        }
        disk.fail(Failure::None);
        driver.recover(&mut Random::new(at));
        assert_eq!(driver.durable, position(driver.made), "{context}");
        let (_, loaded) = Driver::start(disk.after_power_loss(Loss::Zeros, at)).expect(&context);
        assert_eq!(check_prefix(&loaded, &context), driver.made, "{context}");
    }
    assert!(failed > 20, "{context}: {failed}");
}

#[test]
fn one_error_at_any_operation_loses_nothing_durable() {
    for seed in 0..4 {
        check(|at| Failure::Once(at, ErrorKind::Other), seed, "one error");
    }
}

#[test]
fn a_disk_that_is_full_for_a_while_loses_nothing_durable() {
    for seed in 10..13 {
        check(|at| Failure::Between(at, at + 12, ErrorKind::StorageFull), seed, "a full disk");
    }
}
