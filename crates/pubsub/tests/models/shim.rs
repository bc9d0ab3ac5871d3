//! The product's shim with shuttle's types.

use std::ops::{Deref, DerefMut};

use shuttle::sync as model;
pub(crate) use shuttle::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
pub(crate) struct Mutex<T>(model::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(model::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> model::MutexGuard<'_, T> {
        self.0.lock().expect("no thread panics")
    }
}

#[derive(Debug)]
pub(crate) struct RwLock<T>(model::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(model::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> impl Deref<Target = T> {
        self.0.read().expect("no thread panics")
    }

    pub(crate) fn write(&self) -> impl DerefMut<Target = T> {
        self.0.write().expect("no thread panics")
    }
}
