//! Crashes at every operation of a run with rewrites. All durable commands are loaded, and the
//! loaded commands are a prefix of the written ones. The files are repaired, and the run continues.

use base::random::Random;

use crate::log::{Driver, check_prefix, position, writes_before};
use crate::simulated_disk::{Failure, Loss, SimulatedDisk};

const STEPS: u64 = 40;

/// Writes until the disk loses power. Returns the position up to which commands were durable.
fn write_until_power_loss(disk: &SimulatedDisk, seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let Ok((mut driver, _)) = Driver::start(disk.clone()) else { return 0 };
    if driver.aof.needs_base() && driver.begin(&mut random).and_then(|()| driver.finish()).is_err()
    {
        return driver.durable;
    }
    for _ in 0..STEPS {
        // Durable commands stay durable before and after a failure.
        if driver.step(&mut random).is_err() && driver.aof.needs_base() {
            break;
        }
    }
    driver.durable
}

/// Loads the files after a crash, and continues to write.
fn check_after(disk: SimulatedDisk, durable: u64, exact: bool, context: &str) -> u64 {
    let (mut driver, loaded) = match Driver::start(disk.clone()) {
        Ok(started) => started,
        Err(error) => panic!("{context}: {error:?}"),
    };
    if exact {
        let writes = check_prefix(&loaded, context);
        assert!(writes >= writes_before(durable), "{context}: {writes} of {durable}");
        assert_eq!(driver.durable, position(writes), "{context}");
    } else {
        let certain = writes_before(durable);
        let commands = (1..=certain).map(|write| crate::log::commands(write).len()).sum();
        assert!(loaded.len() >= commands, "{context}");
        check_prefix(&loaded[..commands], context);
        return durable;
    }
    // The repaired file can be appended to, and read again.
    let mut random = Random::new(durable);
    driver.made += 3;
    driver.recover(&mut random);
    let durable = driver.durable;
    let (_, loaded) = Driver::start(disk.after_power_loss(Loss::Zeros, 1)).expect(context);
    assert!(check_prefix(&loaded, context) >= writes_before(durable), "{context}");
    durable
}

fn check_losses(seeds: std::ops::Range<u64>, losses: &[Loss]) {
    let mut crashes = 0;
    for seed in seeds {
        let whole = SimulatedDisk::new(seed);
        assert!(write_until_power_loss(&whole, seed) > 0);
        let operations = whole.operations().len() as u64;
        for at in 0..operations {
            let disk = SimulatedDisk::new(seed);
            disk.fail(Failure::Power(at));
            let durable = write_until_power_loss(&disk, seed);
            for loss in losses {
                let context = format!("seed {seed}, operation {at} of {operations}, {loss:?}");
                check_after(
                    disk.after_power_loss(*loss, at),
                    durable,
                    *loss != Loss::Garbage,
                    &context,
                );
                crashes += 1;
            }
            let context = format!("seed {seed}, killed at operation {at}");
            check_after(disk.after_kill(), durable, true, &context);
        }
    }
    assert!(crashes > 300, "{crashes}");
}

#[test]
fn a_power_loss_at_every_operation_loses_nothing_durable() {
    check_losses(0..4, &[Loss::Cut, Loss::Zeros]);
}

#[test]
fn garbage_in_the_last_writes_does_not_keep_the_rest_from_loading() {
    check_losses(100..103, &[Loss::Garbage]);
}

#[test]
fn one_crash_after_another_loses_nothing_durable() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let (mut disk, mut durable) = (SimulatedDisk::new(seed), 0);
        for crash in 0..8 {
            disk.fail(Failure::Power(20 + random.below(200)));
            durable = write_until_power_loss(&disk, seed * 100 + crash).max(durable);
            let loss = [Loss::Cut, Loss::Zeros][random.below(2) as usize];
            disk = disk.after_power_loss(loss, seed);
            let context = format!("seed {seed}, crash {crash}, {loss:?}");
            durable = check_after(disk.clone(), durable, true, &context);
        }
    }
}
