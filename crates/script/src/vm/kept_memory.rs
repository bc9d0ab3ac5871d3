//! The memory that stays in a VM between runs: compiled code, and what libraries keep in their
//! variables. Each run has at least half of the VM's memory, whatever other code keeps.

use std::cmp::Reverse;

use sys::luau::category_bytes;

use super::Vm;

impl Vm {
    /// Frees what code and libraries keep, if that leaves less than half of the memory for a run:
    /// first compiled scripts, then the libraries that keep most. They are compiled and loaded
    /// again when they are called.
    pub(super) fn make_room(&mut self) {
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
        let mut libraries: Vec<_> = self.cache.categories().into_iter().map(bytes).collect();
        libraries.sort_by_key(|library| Reverse(*library));
        for (bytes, category) in libraries {
            self.cache.drop_category(category);
            excess = excess.saturating_sub(bytes);
            if excess == 0 {
                break;
            }
        }
        let _ = self.lua.gc_collect();
    }

    /// After runs: frees the memory that libraries keep in their variables, if it leaves too little
    /// for other code. A library that kept much is loaded again when it is called next.
    pub fn relieve(&mut self) {
        if self.is_crowded.take() {
            self.make_room();
        }
    }
}
