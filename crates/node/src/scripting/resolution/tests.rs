//! How calls find scripts and functions, and when they need the exclusive slot.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use resp::Span;
use script::{FunctionInfo, Library, LibraryDraft};

use super::*;
use crate::config::Config;
use crate::scripting::vm::with_vm;
use crate::state::node::Node;

/// A library that takes a while to load, with so many bytes besides.
fn library(bytes: usize) -> Arc<Library> {
    let name = b"f".to_vec();
    let function = FunctionInfo { name, description: None, flags: ScriptFlags::default() };
    let code = "for i = 1, 1e5 do end redis.register_function('f', function() end)";
    let text = format!("#!lua name=l\n{code} --{}", "x".repeat(bytes));
    let draft = LibraryDraft::new(text.as_bytes()).unwrap();
    Arc::new(draft.with_functions(vec![function]))
}

/// The arguments of a call of a script or function, without keys.
fn with_args<R>(call: [&str; 2], work: impl FnOnce(&Args<'_>) -> R) -> R {
    let texts = [call[0], call[1], "0"].map(|text| Arc::new(text.as_bytes().to_vec()));
    work(&Args::new(&[], &[0, 1, 2].map(Span::own), &texts))
}

/// Calls a function whose library is replaced so often, at most, while it is loaded. Returns
/// whether it is found, and is that of the library that is there in the end.
fn find_while_replaced(times: usize) -> (bool, bool) {
    let node = Arc::new(Node::new(Config::default(), 1, 1));
    let mut worker = Worker::new(Arc::clone(&node), 0, crate::table(), 1, 1.0);
    let replace = || node.scripting.libraries.write().insert(&library(0), true).unwrap();
    replace();
    let left = Cell::new(times);
    let tsc = || {
        if let Some(rest) = left.get().checked_sub(1) {
            left.set(rest);
            replace();
        }
        0
    };
    let found = with_args(["FCALL", "f"], |args| {
        with_vm(&node, |vm| function(vm, &mut worker, &tsc, args, false)).unwrap()
    });
    assert!(times == 0 || left.get() < times, "the load has been disturbed");
    (found.is_ok(), found.is_ok_and(|found| found.library.is_live()))
}

#[test]
fn a_function_is_found_while_its_library_is_replaced() {
    assert_eq!(find_while_replaced(0), (true, true));
    assert_eq!(find_while_replaced(1), (true, true));
    assert_eq!(find_while_replaced(usize::MAX), (true, false));
}

/// Whether a call must be exclusive among scripts. It finds what it names when it is.
fn needs_exclusive_slot(node: &Arc<Node>, what: Named, name: &str) -> bool {
    let mut worker = Worker::new(Arc::clone(node), 0, crate::table(), 1, 1.0);
    let call = ScriptCall { what, read_only: false };
    with_args(["CALL", name], |args| {
        let mut resolve = |is_exclusive| {
            with_vm(node, |vm| call.resolve(vm, &mut worker, &|| 0, args, is_exclusive)).unwrap()
        };
        let refused = matches!(resolve(false), Err(Failed::NotExclusive));
        assert!(resolve(true).is_ok() && resolve(false).is_ok(), "{what:?}");
        refused
    })
}

#[test]
fn new_scripts_and_large_sources_need_the_exclusive_slot() {
    let node = Arc::new(Node::new(Config::default(), 1, 1));
    assert!(needs_exclusive_slot(&node, Named::Body, "return 1"));
    let large = format!("return 2 --{}", "x".repeat(LARGE_SOURCE_BYTES));
    for (text, is_large) in [("return 2", false), (&large, true)] {
        let script = Arc::new(Script::new(text.as_bytes()).unwrap());
        node.scripting.scripts.write().add_loaded(&script, 0);
        let sha = String::from_utf8(script.sha().to_vec()).unwrap();
        assert_eq!(needs_exclusive_slot(&node, Named::Sha, &sha), is_large);
    }
    for bytes in [0, LARGE_SOURCE_BYTES] {
        node.scripting.libraries.write().insert(&library(bytes), true).unwrap();
        assert_eq!(needs_exclusive_slot(&node, Named::Function, "f"), bytes > 0);
    }
}
