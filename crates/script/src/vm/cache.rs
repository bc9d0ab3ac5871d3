//! Compiled scripts and loaded functions of one VM.
//!
//! An entry is valid as long as its [`Script`] or [`Library`] is registered, which the shared
//! object itself knows: a hit takes no lock.

use std::collections::{HashMap, HashSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use foldhash::fast::RandomState;
use sys::luau::Pinned;

use crate::flags::ScriptFlags;
use crate::library::{FunctionInfo, Library, lower_name};
use crate::script::{Script, Sha, lower};

/// The most compiled scripts in a VM. Beyond it, unregistered ones are dropped first, then all:
/// compiling one again takes a few microseconds.
const COMPILED_SCRIPTS_MAX: usize = 4096;

/// The number of functions from which a VM looks for unregistered ones.
const FUNCTIONS_SWEEP_MIN: usize = 64;

/// A compiled script or a function of a library, in the VM that compiled it.
#[derive(Debug)]
pub(crate) struct PinnedCode(pub(super) Pinned);

/// A compiled script in a VM.
#[derive(Debug)]
pub struct LoadedScript {
    /// The script that was compiled.
    pub script: Arc<Script>,
    pub(crate) code: PinnedCode,
}

/// A loaded function in a VM.
#[derive(Debug)]
pub struct LoadedFunction {
    /// The library that registered it.
    pub library: Arc<Library>,
    /// Its index in the library.
    pub index: usize,
    /// The flags that it declares.
    pub flags: ScriptFlags,
    /// The category of the library's memory, in use as long as this exists.
    pub(super) category: Rc<u8>,
    pub(crate) code: PinnedCode,
}

impl LoadedFunction {
    /// Its name, description and flags.
    pub fn info(&self) -> Option<&FunctionInfo> {
        self.library.functions().get(self.index)
    }
}

/// The cache of a VM; see this module.
#[derive(Default)]
pub struct Cache {
    by_sha: HashMap<Sha, Rc<LoadedScript>, RandomState>,
    by_body: HashMap<Arc<[u8]>, Rc<LoadedScript>, RandomState>,
    functions: HashMap<Vec<u8>, Rc<LoadedFunction>, RandomState>,
    /// The number of functions after the last search for unregistered ones.
    functions_kept: usize,
    /// The category of the library that was loaded last.
    category: u8,
    /// The categories that libraries use, by number.
    categories: Vec<Weak<u8>>,
    /// The entry that was found last and is most likely to be looked up next: comparing a name
    /// costs less than hashing it.
    last_script: Option<Rc<LoadedScript>>,
    last_function: Option<Rc<LoadedFunction>>,
}

impl Cache {
    pub fn by_sha(&mut self, sha: &[u8]) -> Option<Rc<LoadedScript>> {
        self.last_script_if(|last| last.sha()[..] == *sha).or_else(|| {
            let found = self.by_sha.get(&lower(sha)?).filter(|found| found.script.is_live())?;
            self.last_script = Some(Rc::clone(found));
            Some(Rc::clone(found))
        })
    }

    pub fn by_body(&mut self, body: &[u8]) -> Option<Rc<LoadedScript>> {
        self.last_script_if(|last| last.body()[..] == *body).or_else(|| {
            let found = self.by_body.get(body).filter(|found| found.script.is_live())?;
            self.last_script = Some(Rc::clone(found));
            Some(Rc::clone(found))
        })
    }

    fn last_script_if(&self, is_it: impl FnOnce(&Script) -> bool) -> Option<Rc<LoadedScript>> {
        let last = self.last_script.as_ref()?;
        (is_it(&last.script) && last.script.is_live()).then(|| Rc::clone(last))
    }

    pub fn function(&mut self, name: &[u8]) -> Option<Rc<LoadedFunction>> {
        if let Some(last) = &self.last_function
            && last.info().is_some_and(|info| info.name == name)
            && last.library.is_live()
        {
            return Some(Rc::clone(last));
        }
        let found = self.functions.get(&*lower_name(name));
        let found = found.filter(|found| found.library.is_live())?;
        self.last_function = Some(Rc::clone(found));
        Some(Rc::clone(found))
    }

    /// A function of a library that may be unregistered.
    pub fn function_of(&self, library: &Arc<Library>, name: &[u8]) -> Option<Rc<LoadedFunction>> {
        let found = self.functions.get(&*lower_name(name));
        found.filter(|found| Arc::ptr_eq(&found.library, library)).map(Rc::clone)
    }

    pub fn add_script(&mut self, script: &Arc<Script>, code: PinnedCode) -> Rc<LoadedScript> {
        if self.by_sha.len() >= COMPILED_SCRIPTS_MAX {
            self.by_sha.retain(|_, loaded| loaded.script.is_live());
            if self.by_sha.len() >= COMPILED_SCRIPTS_MAX {
                self.by_sha.clear();
            }
            self.last_script = None;
            self.by_body.clear();
            let kept = self.by_sha.values();
            self.by_body.extend(kept.map(|l| (Arc::clone(l.script.body()), Rc::clone(l))));
        }
        let loaded = Rc::new(LoadedScript { script: Arc::clone(script), code });
        self.by_sha.insert(*script.sha(), Rc::clone(&loaded));
        self.by_body.insert(Arc::clone(script.body()), Rc::clone(&loaded));
        loaded
    }

    /// The category of memory for a library that will be loaded: one that no other library uses,
    /// unless more than 255 are loaded.
    pub fn next_category(&mut self) -> Rc<u8> {
        self.categories.resize(usize::from(u8::MAX) + 1, Weak::new());
        for _ in 0..u8::MAX {
            self.category = self.category % u8::MAX + 1;
            if self.categories[usize::from(self.category)].strong_count() == 0 {
                break;
            }
        }
        let known = &mut self.categories[usize::from(self.category)];
        known.upgrade().unwrap_or_else(|| {
            let category = Rc::new(self.category);
            *known = Rc::downgrade(&category);
            category
        })
    }

    /// The categories of memory of the loaded libraries.
    pub fn categories(&self) -> HashSet<u8, RandomState> {
        self.functions.values().map(|function| *function.category).collect()
    }

    /// Drops the functions of libraries with a category.
    pub fn drop_category(&mut self, category: u8) {
        self.functions.retain(|_, function| *function.category != category);
        self.functions_kept = self.functions.len();
        self.last_function = None;
    }

    /// Adds the functions of a library, in the order of their registration.
    pub fn add_library(
        &mut self,
        library: &Arc<Library>,
        category: &Rc<u8>,
        callbacks: Vec<PinnedCode>,
    ) {
        // Unregistered functions are dropped when the number has doubled, so the cache holds at
        // most twice the register, and the search costs each library next to nothing.
        if self.functions.len() >= FUNCTIONS_SWEEP_MIN.max(2 * self.functions_kept) {
            self.functions.retain(|_, function| function.library.is_live());
            self.functions_kept = self.functions.len();
        }
        self.last_function = None;
        for ((index, info), code) in library.functions().iter().enumerate().zip(callbacks) {
            let (library, flags) = (Arc::clone(library), info.flags);
            let category = Rc::clone(category);
            let loaded = LoadedFunction { library, index, flags, category, code };
            self.functions.insert(info.name.to_ascii_lowercase(), Rc::new(loaded));
        }
    }

    /// Drops all scripts. Returns whether there was one.
    pub fn drop_scripts(&mut self) -> bool {
        self.by_body.clear();
        self.last_script = None;
        !std::mem::take(&mut self.by_sha).is_empty()
    }

    /// Drops unregistered entries with their code.
    pub fn sweep(&mut self) {
        self.by_sha.retain(|_, loaded| loaded.script.is_live());
        self.by_body.retain(|_, loaded| loaded.script.is_live());
        self.functions.retain(|_, function| function.library.is_live());
        self.functions_kept = self.functions.len();
        (self.last_script, self.last_function) = (None, None);
    }
}
