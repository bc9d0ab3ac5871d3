//! Libraries of functions, and the errors of FUNCTION about them.
//!
//! All threads share a [`Library`]; each runs its code once in its own VM, where the functions then
//! live. [`Libraries`] is the register, by name of library and of function. Loading has three
//! steps, so that the register is not locked while code runs: [`Libraries::draft`] checks the code
//! before it runs, [`Vm::load_library`](crate::Vm::load_library) runs it, and [`Libraries::insert`]
//! registers the library or finds a collision. Only then does the VM take the functions
//! ([`Vm::add_library`](crate::Vm::add_library)).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::ScriptFailure;
use crate::flags::ScriptFlags;
use crate::key_access::ScriptKeysSeen;
use crate::shebang;

/// The error for an invalid name of a library or function.
pub const INVALID_NAME: &str = "Library names can only contain letters, numbers, or \
                                underscores(_) and must be at least one character long";

/// The only engine, as FUNCTION LIST and FUNCTION STATS show it.
pub const ENGINE: &str = "LUA";

/// A function of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// The name for FCALL.
    pub name: Vec<u8>,
    /// Its description, if it has one.
    pub description: Option<Vec<u8>>,
    /// The flags that it declares.
    pub flags: ScriptFlags,
}

/// A library as it was loaded.
#[derive(Debug)]
pub struct Library {
    name: Vec<u8>,
    code: Arc<[u8]>,
    code_start: usize,
    functions: Vec<FunctionInfo>,
    /// How each of them uses keys.
    key_accesses: Box<[ScriptKeysSeen]>,
    /// Whether it is registered; false after it was deleted or replaced.
    live: AtomicBool,
}

/// A library whose code has not run yet.
#[derive(Debug)]
pub struct LibraryDraft {
    /// Its name.
    pub name: Vec<u8>,
    code: Arc<[u8]>,
    code_start: usize,
}

impl LibraryDraft {
    /// The code of a library by its shebang.
    ///
    /// # Errors
    ///
    /// The shebang is missing or wrong, the name is invalid, or the engine is unknown.
    pub fn new(code: &[u8]) -> Result<Self, ScriptFailure> {
        let metadata = shebang::library(code)?;
        if !is_name(&metadata.name) {
            return Err(ScriptFailure::new(format!("ERR {INVALID_NAME}")));
        }
        if !metadata.engine.eq_ignore_ascii_case(ENGINE.as_bytes()) {
            return Err(ScriptFailure::new(
                [b"ERR Engine '", metadata.engine.as_slice(), b"' not found"].concat(),
            ));
        }
        Ok(Self { name: metadata.name, code: code.into(), code_start: metadata.code_start })
    }

    /// The code without the shebang.
    pub fn code(&self) -> &[u8] {
        self.code.get(self.code_start..).unwrap_or_default()
    }

    /// The library with the functions that its code has registered.
    pub fn with_functions(self, functions: Vec<FunctionInfo>) -> Library {
        let Self { name, code, code_start } = self;
        let key_accesses = functions.iter().map(|_| ScriptKeysSeen::default()).collect();
        Library { name, code, code_start, functions, key_accesses, live: AtomicBool::new(true) }
    }
}

impl Library {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The code with its shebang, as a client sent it.
    pub fn source(&self) -> &Arc<[u8]> {
        &self.code
    }

    /// The code without the shebang.
    pub fn code(&self) -> &[u8] {
        self.code.get(self.code_start..).unwrap_or_default()
    }

    /// Its functions in the order of their registration.
    pub fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    /// How the function of this number uses keys.
    pub fn key_access(&self, index: usize) -> Option<&ScriptKeysSeen> {
        self.key_accesses.get(index)
    }

    /// Whether FCALL still finds its functions.
    #[inline]
    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }
}

/// How FUNCTION RESTORE treats existing libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestorePolicy {
    /// Deletes them.
    Flush,
    /// Keeps them; a library of the same name is an error.
    Append,
    /// Replaces those of the same names.
    Replace,
}

/// The register of libraries.
#[derive(Debug, Default)]
pub struct Libraries {
    libraries: HashMap<Vec<u8>, Arc<Library>, foldhash::fast::RandomState>,
    /// By name in lower case, because FCALL accepts names in any case.
    functions: HashMap<Vec<u8>, (Arc<Library>, usize), foldhash::fast::RandomState>,
}

impl Libraries {
    /// The first step of FUNCTION LOAD: checks the code before it runs.
    ///
    /// # Errors
    ///
    /// As [`LibraryDraft::new`], or the library exists and must not be replaced.
    pub fn draft(&self, code: &[u8], replace: bool) -> Result<LibraryDraft, ScriptFailure> {
        let draft = LibraryDraft::new(code)?;
        if !replace && self.libraries.contains_key(&draft.name) {
            return Err(ScriptFailure::new(
                [b"ERR Library '", draft.name.as_slice(), b"' already exists"].concat(),
            ));
        }
        Ok(draft)
    }

    /// The last step: registers a library whose code has run.
    ///
    /// # Errors
    ///
    /// The library exists and must not be replaced, or a function of another library has the name
    /// of one of its functions. Nothing has changed; VMs forget the library.
    pub fn insert(&mut self, library: &Arc<Library>, replace: bool) -> Result<(), ScriptFailure> {
        let inserted = self.try_insert(library, replace);
        if inserted.is_err() {
            library.live.store(false, Ordering::Release);
        }
        inserted
    }

    fn try_insert(&mut self, library: &Arc<Library>, replace: bool) -> Result<(), ScriptFailure> {
        if !replace && self.libraries.contains_key(&library.name) {
            return Err(ScriptFailure::new(
                [b"ERR Library '", library.name.as_slice(), b"' already exists"].concat(),
            ));
        }
        self.check_functions(&library.functions, |other| other.name == library.name)?;
        self.remove(&library.name.clone());
        self.link(library);
        Ok(())
    }

    /// Refuses functions whose names belong to libraries that stay.
    fn check_functions(
        &self,
        functions: &[FunctionInfo],
        goes: impl Fn(&Library) -> bool,
    ) -> Result<(), ScriptFailure> {
        let taken = functions.iter().find(|function| {
            let taken = self.functions.get(&function.name.to_ascii_lowercase());
            taken.is_some_and(|(other, _)| !goes(other))
        });
        match taken {
            Some(function) => Err(ScriptFailure::new(
                [b"ERR Function ", function.name.as_slice(), b" already exists"].concat(),
            )),
            None => Ok(()),
        }
    }

    fn link(&mut self, library: &Arc<Library>) {
        for (index, function) in library.functions.iter().enumerate() {
            let name = function.name.to_ascii_lowercase();
            // If two names of a library differ only in case, the last one is found.
            self.functions.insert(name, (Arc::clone(library), index));
        }
        self.libraries.insert(library.name.clone(), Arc::clone(library));
    }

    /// FUNCTION DELETE. Returns whether the library existed.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let Some(library) = self.libraries.remove(name) else { return false };
        library.live.store(false, Ordering::Release);
        for function in &library.functions {
            let name = function.name.to_ascii_lowercase();
            let found = self.functions.get(&name);
            if found.is_some_and(|(owner, _)| Arc::ptr_eq(owner, &library)) {
                self.functions.remove(&name);
            }
        }
        true
    }

    /// FUNCTION FLUSH.
    pub fn flush(&mut self) {
        for library in self.libraries.values() {
            library.live.store(false, Ordering::Release);
        }
        self.libraries.clear();
        self.functions.clear();
    }

    /// The last step of FUNCTION RESTORE: registers all libraries or none.
    ///
    /// # Errors
    ///
    /// A library or a function exists that the policy keeps. Nothing has changed; VMs forget the
    /// libraries.
    pub fn restore(
        &mut self,
        mut restored: Libraries,
        policy: RestorePolicy,
    ) -> Result<(), ScriptFailure> {
        let joined = self.join(&restored, policy);
        if joined.is_err() {
            restored.flush();
        }
        joined
    }

    fn join(&mut self, restored: &Libraries, policy: RestorePolicy) -> Result<(), ScriptFailure> {
        if policy == RestorePolicy::Flush {
            self.flush();
        }
        for library in restored.libraries.values() {
            if policy == RestorePolicy::Append && self.libraries.contains_key(&library.name) {
                return Err(ScriptFailure::new(
                    [b"ERR Library ", library.name.as_slice(), b" already exists"].concat(),
                ));
            }
        }
        for library in restored.libraries.values() {
            let goes = |other: &Library| restored.libraries.contains_key(&other.name);
            self.check_functions(&library.functions, goes)?;
        }
        // Functions may move between libraries, so all old libraries are removed before new ones
        // are added.
        for library in restored.libraries.values() {
            self.remove(&library.name);
        }
        for library in restored.libraries.values() {
            self.link(library);
        }
        Ok(())
    }

    /// The library of a function, and its index there.
    pub fn function(&self, name: &[u8]) -> Option<(&Arc<Library>, &FunctionInfo)> {
        let (library, index) = self.functions.get(&*lower_name(name))?;
        Some((library, library.functions.get(*index)?))
    }

    /// All libraries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Library>> {
        self.libraries.values()
    }

    /// How many libraries there are.
    pub fn len(&self) -> usize {
        self.libraries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.libraries.is_empty()
    }

    /// How many functions there are.
    pub fn function_count(&self) -> usize {
        self.functions.len()
    }
}

/// Whether the bytes are a valid name of a library or function.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// The lookup key of a function's name.
pub fn lower_name(name: &[u8]) -> Cow<'_, [u8]> {
    if name.iter().any(u8::is_ascii_uppercase) {
        return Cow::Owned(name.to_ascii_lowercase());
    }
    Cow::Borrowed(name)
}
