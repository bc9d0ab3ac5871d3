//! Compiled scripts and loaded functions of one VM.
//!
//! An entry is valid as long as what it was compiled from is registered, which the shared
//! [`Script`] or [`Library`] says itself: a hit takes no lock.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use sys::luau::Pinned;

use crate::flags::ScriptFlags;
use crate::library::{FunctionInfo, Library, lower_name};
use crate::script::{Script, Sha, lower};

/// Compiled scripts that a VM keeps. Beyond it those that are gone are dropped first, and then
/// all: to compile one again takes some microseconds.
const COMPILED_SCRIPTS_MAX: usize = 4096;

/// Functions that a VM holds before it looks for those that are gone.
const FUNCTIONS_SWEEP_MIN: usize = 64;

/// A compiled script or a function of a library, in the VM that compiled it.
#[derive(Debug)]
pub(crate) struct PinnedCode(pub(super) Pinned);

/// A script that is compiled in a VM.
#[derive(Debug)]
pub struct LoadedScript {
    /// What was compiled.
    pub script: Arc<Script>,
    pub(crate) code: PinnedCode,
}

/// A function that is loaded in a VM.
#[derive(Debug)]
pub struct LoadedFunction {
    /// The library that has registered it.
    pub library: Arc<Library>,
    /// Which of its functions it is.
    pub index: usize,
    /// What it declares.
    pub flags: ScriptFlags,
    pub(crate) code: PinnedCode,
}

impl LoadedFunction {
    /// What is known of it.
    pub fn info(&self) -> Option<&FunctionInfo> {
        self.library.functions().get(self.index)
    }
}

/// See the module.
#[derive(Default)]
pub struct Cache {
    by_sha: HashMap<Sha, Rc<LoadedScript>, RandomState>,
    by_body: HashMap<Arc<[u8]>, Rc<LoadedScript>, RandomState>,
    functions: HashMap<Vec<u8>, Rc<LoadedFunction>, RandomState>,
    /// Functions that were left by the last look for those that are gone.
    functions_kept: usize,
    /// What was found last, which is most often what is looked for next: to compare a name costs
    /// less than to hash it.
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

    /// Those of a library that may not be registered any more.
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

    /// Takes the functions of a library, in the order in which it has registered them.
    pub fn add_library(&mut self, library: &Arc<Library>, callbacks: Vec<PinnedCode>) {
        // What was deleted or replaced goes when there is as much again, so the cache holds no more
        // than twice the register, and looking at all costs each library next to nothing.
        if self.functions.len() >= FUNCTIONS_SWEEP_MIN.max(2 * self.functions_kept) {
            self.functions.retain(|_, function| function.library.is_live());
            self.functions_kept = self.functions.len();
        }
        self.last_function = None;
        for ((index, info), code) in library.functions().iter().enumerate().zip(callbacks) {
            let loaded =
                LoadedFunction { library: Arc::clone(library), index, flags: info.flags, code };
            self.functions.insert(info.name.to_ascii_lowercase(), Rc::new(loaded));
        }
    }

    /// Drops all scripts. Returns whether there was one.
    pub fn drop_scripts(&mut self) -> bool {
        self.by_body.clear();
        self.last_script = None;
        !std::mem::take(&mut self.by_sha).is_empty()
    }

    /// Drops what is gone, with its code.
    pub fn sweep(&mut self) {
        self.by_sha.retain(|_, loaded| loaded.script.is_live());
        self.by_body.retain(|_, loaded| loaded.script.is_live());
        self.functions.retain(|_, function| function.library.is_live());
        self.functions_kept = self.functions.len();
        (self.last_script, self.last_function) = (None, None);
    }
}
