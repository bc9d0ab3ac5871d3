//! The memory that stays in a VM between runs: compiled code, and what libraries keep in their
//! variables. Each run has at least half of the VM's memory, whatever other code keeps.

use std::cmp::Reverse;

use sys::luau::category_bytes;

use super::Vm;

/// Libraries that together keep no more than this part of the memory are not dropped for the run of
/// another one: that one would hardly gain from it.
const SPARED_PART: usize = 16;

impl Vm {
    /// Frees what code and libraries keep, if that leaves less than half of the memory for a run:
    /// first compiled scripts, then the libraries that keep most, but not those of the category
    /// `except`, whose function runs next. They are compiled and loaded again when they are called.
    pub(super) fn make_room(&mut self, except: Option<u8>) {
        let kept_bytes_max = self.state.memory_bytes_max / 2;
        if self.lua.used_memory() <= kept_bytes_max {
            return;
        }
        // As in `recover`.
        let _ = self.lua.gc_collect();
        if self.lua.used_memory() > kept_bytes_max && self.cache.drop_scripts() {
            let _ = self.lua.gc_collect();
        }
        let mut excess = self.lua.used_memory().saturating_sub(kept_bytes_max);
        if excess == 0 {
            return;
        }
        let bytes = |category| (category_bytes(&self.lua, category), category);
        let others = self.cache.categories().into_iter().filter(|other| Some(*other) != except);
        let mut libraries: Vec<_> = others.map(bytes).collect();
        libraries.sort_by_key(|library| Reverse(*library));
        let mut kept_bytes: usize = libraries.iter().map(|(bytes, _)| bytes).sum();
        let spared_bytes = except.map_or(0, |_| self.state.memory_bytes_max / SPARED_PART);
        for (bytes, category) in libraries {
            if excess == 0 || kept_bytes <= spared_bytes {
                break;
            }
            self.cache.drop_category(category);
            (excess, kept_bytes) = (excess.saturating_sub(bytes), kept_bytes - bytes);
        }
        let _ = self.lua.gc_collect();
    }

    /// Notes whether code and variables leave enough memory for a run.
    #[inline]
    pub fn look_at_memory(&self) {
        if self.lua.used_memory() > self.state.memory_bytes_max / 2 {
            self.is_crowded.set(true);
        }
    }

    /// Before a run, and when other clients do not wait for this thread's shards: frees the memory
    /// that libraries keep in their variables, if they leave too little for other code. A library
    /// that kept much is loaded again when it is called next. Takes up to three full collections.
    pub fn relieve(&mut self) {
        if self.is_crowded.take() {
            self.make_room(None);
        }
    }
}
