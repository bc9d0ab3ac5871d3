//! A key and its value in one allocation.
//!
//! ```text
//! offset 0   head        u64: kind 5 | expires 1 | object 1 | wide 1 | access_clock 24 |
//!                             key_len 12 | len 20
//!        8   wide        u64: key_len 32 | len 32   (only when a length does not fit the head)
//!       ..   expires_at  i64                        (only with an expiry)
//!       ..   object      P                          (only when the payload is an object)
//!       ..   key         key_len bytes
//!       ..   bytes       len bytes                  (only when the payload is inline bytes)
//! ```
//!
//! The payload is either inline bytes or one owned `P`. The caller defines the meaning of `kind`
//! (5 bits), `access_clock` (24 bits) and `expires_at` (64 bits).
//!
//! Invariants: the size of the allocation is always `class_bytes(size)`. No capacity is stored
//! therefore, and a payload is overwritten in place exactly if old and new length are in one size
//! class. The address fits 48 bits and is a multiple of 8.

use std::alloc::{self, Layout};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

const HEAD_BYTES: usize = 8;
const WIDE_BYTES: usize = 8;
const EXPIRES_AT_BYTES: usize = 8;
const ALIGN: usize = 8;
/// Lengths from this one on need the wide word.
const NARROW_KEY_BYTES_END: usize = 1 << 12;
const NARROW_VALUE_BYTES_END: usize = 1 << 20;
/// The largest length, which has 32 bits in the wide word. Callers have lower limits: 3 GB for a
/// key or string, and 1 GB for a packed value plus the expiries of a hash.
const LEN_BYTES_MAX: usize = u32::MAX as usize;
/// The bits of an access clock.
pub const ACCESS_CLOCK_MASK: u32 = (1 << 24) - 1;

const EXPIRES: u64 = 1 << 5;
const OBJECT: u64 = 1 << 6;
const WIDE: u64 = 1 << 7;

/// The value of a record.
pub enum Payload<'a, P> {
    /// Bytes copied into the record.
    Bytes(&'a [u8]),
    /// One value owned by the record.
    Object(P),
}

/// An owned record; see the layout above.
pub struct Record<P> {
    base: NonNull<u8>,
    owns: PhantomData<P>,
}

// SAFETY: a record exclusively owns its allocation and its `P`; nothing in it is tied to a thread.
unsafe impl<P: Send> Send for Record<P> {}
// SAFETY: shared access only reads the allocation.
unsafe impl<P: Sync> Sync for Record<P> {}

/// The fields of the head word, decoded.
#[derive(Clone, Copy)]
struct RecordShape {
    kind: u8,
    expires: bool,
    object: bool,
    access_clock: u32,
    key_len: usize,
    len: usize,
}

impl RecordShape {
    fn wide(&self) -> bool {
        self.key_len >= NARROW_KEY_BYTES_END || self.len >= NARROW_VALUE_BYTES_END
    }

    fn head(&self) -> u64 {
        let mut head =
            u64::from(self.kind & 31) | u64::from(self.access_clock & ACCESS_CLOCK_MASK) << 8;
        head |= if self.expires { EXPIRES } else { 0 };
        head |= if self.object { OBJECT } else { 0 };
        if self.wide() {
            head | WIDE
        } else {
            head | (self.key_len as u64) << 32 | (self.len as u64) << 44
        }
    }

    fn expires_at_offset(&self) -> usize {
        HEAD_BYTES + if self.wide() { WIDE_BYTES } else { 0 }
    }

    fn object_at(&self) -> usize {
        self.expires_at_offset() + if self.expires { EXPIRES_AT_BYTES } else { 0 }
    }

    fn key_at<P>(&self) -> usize {
        self.object_at() + if self.object { size_of::<P>() } else { 0 }
    }

    fn bytes_at<P>(&self) -> usize {
        self.key_at::<P>() + self.key_len
    }

    fn layout<P>(&self) -> Layout {
        const { assert!(align_of::<P>() <= ALIGN && size_of::<P>().is_multiple_of(ALIGN)) };
        let size = class_bytes(self.bytes_at::<P>() + self.len);
        match Layout::from_size_align(size, ALIGN) {
            Ok(layout) => layout,
            // Both lengths are below 2^32, so the sum is far below isize::MAX.
            Err(_) => unreachable!("record lengths are bounded by LEN_BYTES_MAX"),
        }
    }
}

/// Rounds a size up to the allocator's size class: multiples of 8 up to 64, then four classes for
/// each doubling.
pub fn class_bytes(size: usize) -> usize {
    if size <= 64 {
        return size.max(16).next_multiple_of(8);
    }
    let doubling = usize::BITS - 1 - (size - 1).leading_zeros();
    size.next_multiple_of(1 << (doubling - 2))
}

impl<P> Record<P> {
    /// A new record. `kind` has 5 bits and `access_clock` 24.
    ///
    /// # Panics
    /// If key or value have 4 GiB or more, which the limits of callers prevent.
    pub fn new(
        key: &[u8],
        kind: u8,
        payload: Payload<'_, P>,
        expires_at: Option<i64>,
        access_clock: u32,
    ) -> Self {
        let len = if let Payload::Bytes(bytes) = &payload { bytes.len() } else { 0 };
        assert!(key.len() <= LEN_BYTES_MAX && len <= LEN_BYTES_MAX, "length limit of a record");
        let shape = RecordShape {
            kind,
            expires: expires_at.is_some(),
            object: matches!(payload, Payload::Object(_)),
            access_clock,
            key_len: key.len(),
            len,
        };
        let mut record = Self::allocate(shape);
        // SAFETY: `allocate` made room for every part that `shape` names, and the parts are
        // disjoint; the new allocation overlaps neither the key nor the bytes.
        unsafe {
            let base = record.base.as_ptr();
            if let Some(expires_at) = expires_at {
                base.add(shape.expires_at_offset()).cast::<i64>().write(expires_at);
            }
            base.add(shape.key_at::<P>()).copy_from_nonoverlapping(key.as_ptr(), key.len());
            match payload {
                Payload::Bytes(bytes) => base
                    .add(shape.bytes_at::<P>())
                    .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()),
                Payload::Object(object) => base.add(shape.object_at()).cast::<P>().write(object),
            }
        }
        record.write_shape(shape);
        record
    }

    fn allocate(shape: RecordShape) -> Self {
        let layout = shape.layout::<P>();
        // SAFETY: the layout's size is at least 16.
        let Some(base) = NonNull::new(unsafe { alloc::alloc(layout) }) else {
            alloc::handle_alloc_error(layout)
        };
        Self { base, owns: PhantomData }
    }

    fn write_shape(&mut self, shape: RecordShape) {
        // SAFETY: every allocation holds the head, and the wide word when the shape says so.
        unsafe {
            let base = self.base.as_ptr().cast::<u64>();
            base.write(shape.head());
            if shape.wide() {
                base.add(1).write(shape.key_len as u64 | (shape.len as u64) << 32);
            }
        }
    }

    /// The record for reading.
    #[inline]
    pub fn view(&self) -> RecordRef<'_, P> {
        RecordRef { base: self.base, borrows: PhantomData }
    }

    #[inline]
    fn head(&self) -> u64 {
        self.view().head()
    }

    fn shape(&self) -> RecordShape {
        self.view().shape()
    }

    /// Sets the access clock. Writes only if it differs, to keep the cache line clean.
    #[inline]
    pub fn set_access_clock(&mut self, access_clock: u32) {
        let head = self.head();
        let changed = head & !(u64::from(ACCESS_CLOCK_MASK) << 8)
            | u64::from(access_clock & ACCESS_CLOCK_MASK) << 8;
        if changed != head {
            // SAFETY: every allocation begins with the head.
            unsafe { self.base.as_ptr().cast::<u64>().write(changed) };
        }
    }

    /// Sets or removes the expiry. Adding or removing one moves the record.
    #[inline]
    pub fn set_expires_at(&mut self, expires_at: Option<i64>) {
        if expires_at.is_some() || self.view().has_expiry() {
            self.change_expires_at(expires_at);
        }
    }

    fn change_expires_at(&mut self, expires_at: Option<i64>) {
        let old = self.shape();
        if old.expires != expires_at.is_some() {
            self.reshape(RecordShape { expires: expires_at.is_some(), ..old });
        }
        if let Some(expires_at) = expires_at {
            let at = self.shape().expires_at_offset();
            // SAFETY: the record has an expiry now, and so has room for it.
            unsafe { self.base.as_ptr().add(at).cast::<i64>().write(expires_at) };
        }
    }

    /// The inline bytes for writing, unless the payload is an object.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let shape = self.shape();
        // SAFETY: as in `bytes`, and `&mut self` makes the access exclusive.
        (!shape.object).then(|| unsafe {
            let start = self.base.as_ptr().add(shape.bytes_at::<P>());
            std::slice::from_raw_parts_mut(start, shape.len)
        })
    }

    /// The object for writing, unless the payload is bytes.
    pub fn object_mut(&mut self) -> Option<&mut P> {
        let shape = self.shape();
        // SAFETY: as in `object`, and `&mut self` makes the access exclusive.
        shape.object.then(|| unsafe { &mut *self.base.as_ptr().add(shape.object_at()).cast::<P>() })
    }

    /// Replaces the payload with `bytes`, in place if the size class stays the same.
    #[inline]
    pub fn set_bytes(&mut self, kind: u8, bytes: &[u8]) {
        let old = self.shape();
        // Successive values of a key often have the same length.
        if old.len != bytes.len() || old.kind != kind || old.object {
            self.resize(kind, bytes.len(), false);
        }
        if let Some(own) = self.bytes_mut() {
            own.copy_from_slice(bytes);
        }
    }

    /// Changes the length of the inline payload to `len`: cuts it off, or appends zeros. An object
    /// payload is dropped first and counts as empty.
    pub fn resize_bytes(&mut self, kind: u8, len: usize) -> &mut [u8] {
        self.resize(kind, len, true);
        self.bytes_mut().unwrap_or_default()
    }

    /// Changes the length of the inline payload to `len`. New bytes are zeros; unless `keep` is
    /// set, old bytes may become zeros, too.
    fn resize(&mut self, kind: u8, len: usize, keep: bool) {
        assert!(len <= LEN_BYTES_MAX, "length limit of a record");
        let old = self.shape();
        if old.object {
            drop(self.take_object(old));
        }
        let old = self.shape();
        let new = RecordShape { kind, len, ..old };
        if new.len == old.len && !old.object {
            if new.kind != old.kind {
                self.write_shape(new);
            }
            return;
        }
        if new.layout::<P>() == old.layout::<P>() && new.wide() == old.wide() {
            self.write_shape(new);
            // The new bytes may be uninitialised memory.
            if len > old.len {
                // SAFETY: the allocation's size class covers the new length.
                unsafe {
                    let start = self.base.as_ptr().add(new.bytes_at::<P>() + old.len);
                    start.write_bytes(0, len - old.len);
                }
            }
        } else if keep {
            self.reshape(new);
        } else {
            let expires_at = self.view().expires_at();
            let mut fresh = Self::allocate(new);
            // SAFETY: `fresh` has room for all parts of `new`; the key is read from the old record.
            unsafe {
                let base = fresh.base.as_ptr();
                if let Some(expires_at) = expires_at {
                    base.add(new.expires_at_offset()).cast::<i64>().write(expires_at);
                }
                let key = self.base.as_ptr().add(old.key_at::<P>());
                base.add(new.key_at::<P>()).copy_from_nonoverlapping(key, old.key_len);
                base.add(new.bytes_at::<P>()).write_bytes(0, len);
            }
            fresh.write_shape(new);
            *self = fresh;
        }
    }

    /// Moves the object out. The record then has empty inline bytes.
    fn take_object(&mut self, old: RecordShape) -> P {
        debug_assert!(old.object);
        // SAFETY: the object is read once; the head written next has no object.
        let object = unsafe { self.base.as_ptr().add(old.object_at()).cast::<P>().read() };
        self.reshape_parts(old, RecordShape { object: false, len: 0, ..old });
        object
    }

    /// Replaces the payload with an object and returns the old object.
    pub fn set_object(&mut self, kind: u8, object: P) -> Option<P> {
        let old = self.shape();
        let previous = old.object.then(|| self.take_object(old));
        let (own, object) = (self.view(), Payload::Object(object));
        let fresh = Self::new(own.key(), kind, object, own.expires_at(), old.access_clock);
        *self = fresh;
        previous
    }

    /// The same payload, kind, expiry and access clock under another key.
    pub fn rekeyed(mut self, key: &[u8]) -> Self {
        let old = self.shape();
        let object = old.object.then(|| self.take_object(old));
        let view = self.view();
        let payload = match object {
            Some(object) => Payload::Object(object),
            None => Payload::Bytes(view.bytes().unwrap_or_default()),
        };
        Self::new(key, old.kind, payload, view.expires_at(), old.access_clock)
    }

    /// Drops the record except for its object.
    pub fn into_object(mut self) -> Option<P> {
        let shape = self.shape();
        shape.object.then(|| self.take_object(shape))
    }

    /// Moves all parts to a new allocation with the layout of `new`. The payload keeps its first
    /// `min(old, new)` bytes or its object.
    fn reshape(&mut self, new: RecordShape) {
        let old = self.shape();
        self.reshape_parts(old, new);
    }

    fn reshape_parts(&mut self, old: RecordShape, new: RecordShape) {
        let mut fresh = Self::allocate(new);
        // SAFETY: both allocations hold the parts that their shapes name; they do not overlap. The
        // object is moved: the old allocation is freed below without dropping it.
        unsafe {
            let (from, to) = (self.base.as_ptr(), fresh.base.as_ptr());
            if new.expires {
                let expires_at = if old.expires {
                    from.add(old.expires_at_offset()).cast::<i64>().read()
                } else {
                    0
                };
                to.add(new.expires_at_offset()).cast::<i64>().write(expires_at);
            }
            if new.object && old.object {
                let object = from.add(old.object_at()).cast::<P>().read();
                to.add(new.object_at()).cast::<P>().write(object);
            }
            to.add(new.key_at::<P>())
                .copy_from_nonoverlapping(from.add(old.key_at::<P>()), old.key_len);
            let shared = old.len.min(new.len);
            let bytes = to.add(new.bytes_at::<P>());
            bytes.copy_from_nonoverlapping(from.add(old.bytes_at::<P>()), shared);
            bytes.add(shared).write_bytes(0, new.len - shared);
            alloc::dealloc(from, old.layout::<P>());
            self.base = fresh.base;
        }
        fresh.write_shape(new);
        std::mem::forget(fresh);
    }

    /// The address, which a table stores next to its tag.
    pub(crate) fn into_raw(self) -> u64 {
        let address = self.base.as_ptr() as u64;
        std::mem::forget(self);
        address
    }

    /// The reverse of `into_raw`.
    ///
    /// # Safety
    /// `address` comes from `into_raw` of the same `P`, and no second record is made of it while
    /// this one lives. (To read without owning, wrap the record in `ManuallyDrop`.)
    #[inline]
    pub(crate) unsafe fn from_raw(address: u64) -> Self {
        // SAFETY: `into_raw` returned the address of a live allocation, which is not null.
        let base = unsafe { NonNull::new_unchecked(address as *mut u8) };
        Self { base, owns: PhantomData }
    }
}

impl<P> fmt::Debug for Record<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("key", &self.view().key()).finish()
    }
}

/// A borrowed record, for reading.
pub struct RecordRef<'a, P> {
    base: NonNull<u8>,
    borrows: PhantomData<&'a Record<P>>,
}

impl<P> Clone for RecordRef<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for RecordRef<'_, P> {}

impl<'a, P> RecordRef<'a, P> {
    /// A borrow of the record at `address`.
    ///
    /// # Safety
    /// A live record of the same `P` is at `address` and is neither changed nor dropped during
    /// `'a`.
    #[inline]
    pub(crate) unsafe fn from_raw(address: u64) -> Self {
        // SAFETY: the address of a live record is not null.
        let base = unsafe { NonNull::new_unchecked(address as *mut u8) };
        Self { base, borrows: PhantomData }
    }

    /// The record's address, which stays the same until the record is moved or dropped.
    #[inline]
    pub(crate) fn address(self) -> u64 {
        self.base.as_ptr() as u64
    }

    #[inline]
    fn head(self) -> u64 {
        // SAFETY: every allocation begins with the head, written by `new`.
        unsafe { self.base.as_ptr().cast::<u64>().read() }
    }

    #[inline]
    fn shape(self) -> RecordShape {
        let head = self.head();
        let (key_len, len) = if head & WIDE == 0 {
            ((head >> 32) as usize & 0xfff, (head >> 44) as usize)
        } else {
            // SAFETY: the wide word follows the head when the WIDE bit is set.
            let wide = unsafe { self.base.as_ptr().cast::<u64>().add(1).read() };
            // The lower half and the upper one.
            (wide as u32 as usize, (wide >> 32) as usize)
        };
        RecordShape {
            kind: head as u8 & 31,
            expires: head & EXPIRES != 0,
            object: head & OBJECT != 0,
            access_clock: (head >> 8) as u32 & ACCESS_CLOCK_MASK,
            key_len,
            len,
        }
    }

    /// The key.
    #[inline]
    pub fn key(self) -> &'a [u8] {
        let shape = self.shape();
        // SAFETY: `key_len` initialised bytes are there while the record lives.
        unsafe {
            let start = self.base.as_ptr().add(shape.key_at::<P>());
            std::slice::from_raw_parts(start, shape.key_len)
        }
    }

    /// The 5 bits of the payload's kind.
    #[inline]
    pub fn kind(self) -> u8 {
        self.head() as u8 & 31
    }

    /// The access clock, 24 bits.
    #[inline]
    pub fn access_clock(self) -> u32 {
        (self.head() >> 8) as u32 & ACCESS_CLOCK_MASK
    }

    /// Whether an expiry is set; reads the head only.
    #[inline]
    pub fn has_expiry(self) -> bool {
        self.head() & EXPIRES != 0
    }

    /// The expiry, if one is set.
    #[inline]
    pub fn expires_at(self) -> Option<i64> {
        let shape = self.shape();
        // SAFETY: a record with an expiry has it there, written by `new` or `reshape`.
        shape.expires.then(|| unsafe {
            self.base.as_ptr().add(shape.expires_at_offset()).cast::<i64>().read()
        })
    }

    /// The inline bytes, unless the payload is an object.
    #[inline]
    pub fn bytes(self) -> Option<&'a [u8]> {
        let shape = self.shape();
        // SAFETY: `len` initialised bytes are there if the payload is inline.
        (!shape.object).then(|| unsafe {
            let start = self.base.as_ptr().add(shape.bytes_at::<P>());
            std::slice::from_raw_parts(start, shape.len)
        })
    }

    /// The object, unless the payload is bytes.
    #[inline]
    pub fn object(self) -> Option<&'a P> {
        let shape = self.shape();
        // SAFETY: an object record holds an initialised `P` there, aligned to 8.
        shape.object.then(|| unsafe { &*self.base.as_ptr().add(shape.object_at()).cast::<P>() })
    }

    /// The size of the record's allocation, without memory that its object owns.
    pub fn allocated_bytes(self) -> usize {
        self.shape().layout::<P>().size()
    }

    /// Bytes by which the inline payload can grow in place.
    pub fn spare_bytes(self) -> usize {
        let shape = self.shape();
        let spare = shape.layout::<P>().size() - (shape.bytes_at::<P>() + shape.len);
        // A longer payload would add the wide word.
        spare.min(if shape.wide() { spare } else { NARROW_VALUE_BYTES_END - 1 - shape.len })
    }

    /// A copy of the payload, kind, expiry and access clock under another key.
    pub fn duplicate(self, key: &[u8]) -> Record<P>
    where
        P: Clone,
    {
        let payload = match self.object() {
            Some(object) => Payload::Object(object.clone()),
            None => Payload::Bytes(self.bytes().unwrap_or_default()),
        };
        Record::new(key, self.kind(), payload, self.expires_at(), self.access_clock())
    }
}

impl<P> Drop for Record<P> {
    fn drop(&mut self) {
        let shape = self.shape();
        // SAFETY: the record owns its object and its allocation, made with the shape's layout.
        unsafe {
            if shape.object {
                self.base.as_ptr().add(shape.object_at()).cast::<P>().drop_in_place();
            }
            alloc::dealloc(self.base.as_ptr(), shape.layout::<P>());
        }
    }
}

#[cfg(test)]
mod tests;
