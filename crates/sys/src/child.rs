//! Child processes that must not outlive their parent.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::check;

/// Ties the process of `command` to the thread that starts it: when that thread ends for any
/// reason, the kernel kills the process, even if it is stopped. Children of the process are not
/// tied.
///
/// The process gets its own process group, so that it does not receive the terminal's signals.
pub fn tie_to_thread(command: &mut Command) -> &mut Command {
    let parent = std::process::id();
    let tie = move || {
        // SAFETY: no pointers are involved.
        check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) })?;
        // SAFETY: no pointers are involved, and it never fails.
        match u32::try_from(unsafe { libc::getppid() }) {
            Ok(now) if now == parent => Ok(()),
            // The parent ended before the prctl call.
            _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    };
    command.process_group(0);
    // SAFETY: between fork and exec the closure only makes system calls that are safe in a signal
    // handler, and allocates nothing.
    unsafe { command.pre_exec(tie) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_process_ends_with_the_thread_that_started_it() {
        let start = || {
            let mut command = Command::new("sleep");
            tie_to_thread(command.arg("1000").stdin(Stdio::null())).spawn().unwrap()
        };
        let mut child = std::thread::spawn(start).join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn a_process_has_its_own_group() {
        let mut command = Command::new("sleep");
        let mut child = tie_to_thread(command.arg("1000").stdin(Stdio::null())).spawn().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        // After the name: the state, the parent, the group.
        let group = stat.rsplit_once(") ").unwrap().1.split(' ').nth(2).unwrap();
        assert_eq!(group, child.id().to_string());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
