//! The processors that serve the interrupts of network devices.
//!
//! A device has one or more queues. Each raises its own interrupt, and the processor that takes it
//! also does the kernel's work for the packets of the queue. With one queue, RPS distributes
//! packets to further processors.

use super::HostNeeds;
use super::finding::{HostFinding, KernelSetting};
use super::host::HostFiles;
use super::processors::online;
use crate::servers::processors::listed;

const DEVICES: &str = "/sys/class/net";
/// With fewer processors it is not worthwhile to distribute packets.
const RPS_PROCESSORS_MIN: usize = 4;

/// The interrupts of all network devices.
pub fn interrupts(host: &HostFiles, _: &HostNeeds) -> HostFinding {
    let why = "One processor that takes all interrupts of a network device is busy before the \
               others: it limits the server, and the thread that shares it is slower.";
    let cpus = online(host);
    let mut notes = Vec::new();
    let mut wanted = Vec::new();
    let mut settings = Vec::new();
    for device in host.names(DEVICES) {
        // Devices without hardware have no interrupts: loopback, bridges, tunnels.
        if !host.exists(&format!("{DEVICES}/{device}/device")) {
            continue;
        }
        let queues = receive_queues(host, &device);
        let irqs = interrupts_of(host, &device);
        let served = served_by(host, &irqs);
        notes.push(format!(
            "{device}: {}, interrupts on {}",
            match queues.len() {
                1 => "1 queue".to_owned(),
                count => format!("{count} queues"),
            },
            match served.len() {
                0 => "unknown processors".to_owned(),
                1 => format!("processor {}", served[0]),
                count => format!("{count} processors"),
            }
        ));
        if queues.len() > 1 && irqs.len() > 1 && served.len() == 1 && cpus.len() > 1 {
            wanted.push(format!("{device}: interrupts on all processors"));
            let to = cpus.iter().cycle();
            settings.extend(irqs.iter().zip(to).map(|(irq, cpu)| {
                KernelSetting::new(format!("/proc/irq/{irq}/smp_affinity_list"), cpu.to_string())
            }));
        }
        if let [queue] = queues.as_slice()
            && cpus.len() >= RPS_PROCESSORS_MIN
            && !is_handed_on(host, queue)
        {
            wanted.push(format!("{device}: packets distributed to all processors (RPS)"));
            settings.push(KernelSetting::new(queue.clone(), mask(&cpus)));
        }
    }
    let found = match notes.is_empty() {
        true => "no network device with interrupts".to_owned(),
        false => notes.join("; "),
    };
    if settings.is_empty() {
        return HostFinding::good(found, why);
    }
    let wanted = wanted.join("; ");
    match runs_balancer(host) {
        true => HostFinding::by_hand(
            found,
            format!("{wanted}. irqbalance is active and moves them: configure it, or stop it"),
            why,
        ),
        false => HostFinding::change(found, wanted, why, settings),
    }
}

/// The files with the processors that get the packets of each queue.
fn receive_queues(host: &HostFiles, device: &str) -> Vec<String> {
    let folder = format!("{DEVICES}/{device}/queues");
    let names = host.names(&folder).into_iter().filter(|name| name.starts_with("rx-"));
    names.map(|name| format!("{folder}/{name}/rps_cpus")).collect()
}

/// The numbers of a device's interrupts. Those of a virtual device belong to its parent.
fn interrupts_of(host: &HostFiles, device: &str) -> Vec<String> {
    let device = format!("{DEVICES}/{device}/device");
    let own = host.names(&format!("{device}/msi_irqs"));
    match own.is_empty() {
        true => host.names(&format!("{device}/../msi_irqs")),
        false => own,
    }
}

/// The processors that serve these interrupts, without duplicates.
fn served_by(host: &HostFiles, irqs: &[String]) -> Vec<usize> {
    let list = |irq: &String| {
        let file = |name| host.read(&format!("/proc/irq/{irq}/{name}"));
        let effective = file("effective_affinity_list").filter(|list| !list.is_empty());
        effective.or_else(|| file("smp_affinity_list")).unwrap_or_default()
    };
    let mut all: Vec<usize> = irqs.iter().flat_map(|irq| listed(&list(irq))).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether packets of a queue are distributed.
fn is_handed_on(host: &HostFiles, queue: &str) -> bool {
    // A kernel without RPS does not have the file.
    host.read(queue).is_none_or(|mask| mask.chars().any(|c| !matches!(c, '0' | ',')))
}

/// Processors as the kernel reads a mask: groups of 32 bits in hexadecimal, the highest first.
fn mask(cpus: &[usize]) -> String {
    let groups = cpus.iter().max().map_or(1, |most| most / 32 + 1);
    let group = |group: usize| {
        let own = cpus.iter().filter(|cpu| *cpu / 32 == group);
        format!("{:08x}", own.fold(0_u32, |mask, cpu| mask | 1 << (cpu % 32)))
    };
    (0..groups).rev().map(group).collect::<Vec<_>>().join(",")
}

fn runs_balancer(host: &HostFiles) -> bool {
    let names = host.names("/proc");
    let mut processes = names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    processes.any(|pid| host.read(&format!("/proc/{pid}/comm")).is_some_and(|c| c == "irqbalance"))
}

#[cfg(test)]
mod tests {
    use crate::tune::network::mask;

    #[test]
    fn masks_are_groups_of_32_bits() {
        assert_eq!(mask(&[0, 1, 2, 3]), "0000000f");
        assert_eq!(mask(&(0..33).collect::<Vec<_>>()), "00000001,ffffffff");
        assert_eq!(mask(&[64]), "00000001,00000000,00000000");
    }
}
