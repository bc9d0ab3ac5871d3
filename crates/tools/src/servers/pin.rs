//! The cores of a thread, and the limit of open files.

use std::str::FromStr;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Error;

/// The most cores that the kernel's fixed-size set can name.
const CPUS_MAX: usize = 1024;

/// A set of cores in the notation of `taskset -c`: `0`, `0,2`, `1-3`. Empty means any core.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpus(Vec<usize>);

impl Cpus {
    /// Restricts the calling thread to the set; an empty set changes nothing. Threads and processes
    /// that it starts later inherit the restriction.
    ///
    /// # Errors
    /// None of the cores exists.
    pub fn pin_thread(&self) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut set = CpuSet::new();
        self.0.iter().for_each(|&cpu| set.set(cpu));
        sched_setaffinity(None, &set).map_err(Error::sys("pin a thread to its cores"))
    }

    /// Does some work with the calling thread restricted to the set, as by [`pin_thread`].
    ///
    /// # Errors
    /// None of the cores exists; then the work is not done.
    ///
    /// [`pin_thread`]: Self::pin_thread
    pub fn while_pinned<T>(&self, work: impl FnOnce() -> T) -> Result<T, Error> {
        if self.0.is_empty() {
            return Ok(work());
        }
        let before = sched_getaffinity(None).map_err(Error::sys("find the cores of a thread"))?;
        self.pin_thread()?;
        let done = work();
        sched_setaffinity(None, &before).map_err(Error::sys("give a thread its cores back"))?;
        Ok(done)
    }

    /// The core of the `index`-th thread, round robin; empty if the set is.
    pub fn one(&self, index: usize) -> Cpus {
        Cpus(self.0.get(index % self.0.len().max(1)).copied().into_iter().collect())
    }
}

impl FromIterator<usize> for Cpus {
    fn from_iter<T: IntoIterator<Item = usize>>(cpus: T) -> Self {
        Cpus(cpus.into_iter().filter(|&cpu| cpu < CPUS_MAX).collect())
    }
}

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text.trim().parse() {
            Ok(cpu) if cpu < CPUS_MAX => Ok(cpu),
            _ => Err(format!("'{text}' is no core number; write 0 or 0,2 or 1-3")),
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                Some((first, last)) => cpus.extend(number(first)?..=number(last)?),
                None => cpus.push(number(part)?),
            }
        }
        Ok(Cpus(cpus))
    }
}

/// Raises the limit of open files to `wanted` if it is lower. Child processes inherit it.
///
/// # Errors
/// The hard limit is below `wanted`.
pub fn allow_open_files(wanted: u64) -> Result<(), Error> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        return Err(Error::Usage(format!(
            "{wanted} open files are needed and {} are allowed: raise `ulimit -Hn`",
            limit.maximum.unwrap_or(0)
        )));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum })
        .map_err(Error::sys("raise the limit of open files"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_lists_parse() {
        assert_eq!("0".parse(), Ok(Cpus(vec![0])));
        assert_eq!("0,2-4".parse(), Ok(Cpus(vec![0, 2, 3, 4])));
        for text in ["", "a", "0-", "1024", "0,,1"] {
            assert!(text.parse::<Cpus>().is_err(), "{text}");
        }
    }

    #[test]
    fn threads_take_turns() {
        let cpus: Cpus = [3, 5].into_iter().collect();
        assert_eq!(cpus.one(3), Cpus(vec![5]));
        assert_eq!(Cpus::default().one(3), Cpus::default());
    }
}
