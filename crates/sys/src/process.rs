//! The process and its threads: processor affinity, descriptor limit, daemon, resource use.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::check;

/// Binds the calling thread to some processors.
///
/// # Errors
/// If none of them exists or is allowed.
pub fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: the set is plain bits; larger numbers are skipped.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(*cpu, &mut set);
        }
        check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)).map(drop)
    }
}

/// Turns off transparent huge pages for this process, regardless of the system's setting.
///
/// # Errors
/// If the kernel does not support it.
pub fn disable_huge_pages() -> io::Result<()> {
    // SAFETY: no pointers are involved.
    check(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) }).map(drop)
}

/// Opens a directory, to reach its files by the descriptor even after it is moved. Needs no right
/// to list its files.
///
/// # Errors
/// If there is no directory with this path.
pub fn open_directory(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(path)
}

/// Makes a directory the working directory, even if it was renamed or deleted.
///
/// # Errors
/// If the process may not enter it.
pub fn enter_directory(directory: &File) -> io::Result<()> {
    // SAFETY: no pointers are involved, and the descriptor is open.
    check(unsafe { libc::fchdir(directory.as_raw_fd()) }).map(drop)
}

/// The user whose rights this process has.
pub fn effective_user() -> u32 {
    // SAFETY: no pointers are involved, and it never fails.
    unsafe { libc::geteuid() }
}

/// Raises the limit of open descriptors towards `wanted` as far as allowed, and returns the new
/// limit.
pub fn raise_open_files(wanted: u64) -> u64 {
    // SAFETY: each call reads or writes only its one structure.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return 1024;
        }
        if limit.rlim_cur < wanted {
            let higher = libc::rlimit { rlim_cur: wanted, rlim_max: limit.rlim_max.max(wanted) };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &higher) == 0 {
                return wanted;
            }
            let hard = libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &hard) == 0 {
                return limit.rlim_max;
            }
        }
        limit.rlim_cur
    }
}

/// User and system time in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTime {
    /// Seconds in user mode.
    pub user: f64,
    /// Seconds in the kernel.
    pub system: f64,
}

fn usage(who: libc::c_int) -> CpuTime {
    // SAFETY: the structure is plain numbers, which the kernel writes.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    CpuTime { user: seconds(usage.ru_utime), system: seconds(usage.ru_stime) }
}

/// The processor time of the whole process.
pub fn process_cpu_time() -> CpuTime {
    usage(libc::RUSAGE_SELF)
}

/// The processor time of the calling thread.
pub fn thread_cpu_time() -> CpuTime {
    usage(libc::RUSAGE_THREAD)
}

/// The kernel's id of the calling thread.
pub fn thread_id() -> u32 {
    // SAFETY: no pointers are involved, and it never fails.
    unsafe { libc::gettid() as u32 }
}

/// How long a thread of this process ran on processors and waited for one, in nanoseconds. `None`
/// if there is no such thread, or the system has no such numbers.
pub fn thread_schedule(thread: u32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

/// The processor time of ended children.
pub fn children_cpu_time() -> CpuTime {
    usage(libc::RUSAGE_CHILDREN)
}

/// Resident bytes of this process, from /proc/self/statm; 0 without that file.
pub fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    // SAFETY: no pointers are involved.
    pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64
}

/// Bytes of memory in the machine.
pub fn system_memory_bytes() -> u64 {
    // SAFETY: no pointers are involved.
    unsafe {
        let (pages, size) =
            (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE));
        pages.max(0) as u64 * size.max(0) as u64
    }
}

/// Moves to the background: forks, leaves the terminal's session and redirects the standard streams
/// to /dev/null. The parent exits. Call it before any thread starts.
///
/// # Errors
/// If the process cannot fork.
pub fn daemonize() -> io::Result<()> {
    // SAFETY: this is the only thread, so the child may use everything that it inherits.
    unsafe {
        if check(libc::fork())? != 0 {
            libc::_exit(0);
        }
        libc::setsid();
        let null = check(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR))?;
        for stream in 0..3 {
            libc::dup2(null, stream);
        }
        if null > 2 {
            libc::close(null);
        }
    }
    Ok(())
}

/// Ends the process with a status at once, without waiting for other threads.
pub fn end_at_once(status: i32) -> ! {
    // SAFETY: no pointers are involved.
    unsafe { libc::_exit(status) }
}

/// Sets the calling thread's name in `ps` and `top`; at most 15 bytes.
pub fn name_thread(name: &CStr) {
    // SAFETY: the kernel reads the text up to its zero byte, and at most 16 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Name, release and machine of the running kernel, as `uname -srm` prints them.
pub fn kernel() -> String {
    // SAFETY: the kernel writes NUL-terminated strings into the structure.
    unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&mut name);
        let text =
            |field: &[libc::c_char]| CStr::from_ptr(field.as_ptr()).to_string_lossy().into_owned();
        format!("{} {} {}", text(&name.sysname), text(&name.release), text(&name.machine))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn affinity_applies_to_the_calling_thread() {
        std::thread::spawn(|| {
            // SAFETY: no pointers are involved.
            let own = unsafe { libc::sched_getcpu() } as usize;
            set_affinity(&[own]).unwrap();
            assert_eq!(std::thread::available_parallelism().unwrap().get(), 1);
            assert!(set_affinity(&[]).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn huge_pages_can_be_disabled() {
        disable_huge_pages().unwrap();
        // SAFETY: no pointers are involved.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) }, 1);
    }

    #[test]
    fn the_descriptor_limit_is_not_lowered() {
        let now = raise_open_files(0);
        assert!(now > 0);
        assert_eq!(raise_open_files(1), now);
    }

    #[test]
    fn the_kernel_has_a_name() {
        assert!(kernel().starts_with("Linux "));
        assert!(process_cpu_time().user >= 0.0);
    }
}
