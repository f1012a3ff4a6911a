//! Taking back a launch: pages are saved before their first store. Only launches that run in parallel pay for it; one
//! that finds anything is restored and run again on one thread, so that reports do not depend on the host's threads.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tilewright_sorted::SortedSet;

use super::device::Allocation;

/// Words of a page.
const PAGE: usize = 1024;
const CLEAN: u8 = 0;
const SAVING: u8 = 1;
const SAVED: u8 = 2;

struct Page {
    allocation: usize,
    first: usize,
    words: Vec<u32>,
    initialised: Vec<u32>,
}

/// Saved pages of some allocations.
pub struct Undo {
    allocations: Vec<Arc<Allocation>>,
    states: Vec<Vec<AtomicU8>>,
    pages: Mutex<Vec<Page>>,
}

impl Undo {
    /// Nothing saved yet. Stores name allocations by their index in this list.
    pub fn new(allocations: Vec<Arc<Allocation>>) -> Self {
        let states = allocations
            .iter()
            .map(|a| (0..a.words().len().div_ceil(PAGE)).map(|_| AtomicU8::new(CLEAN)).collect())
            .collect();
        Undo { allocations, states, pages: Mutex::default() }
    }

    /// Saves the pages of these words unless they are; called before a store.
    #[inline]
    pub fn before_store(&self, allocation: usize, first_word: usize, last_word: usize) {
        for page in first_word / PAGE..=last_word / PAGE {
            let state = &self.states[allocation][page];
            if state.load(Ordering::Acquire) != SAVED {
                self.save(allocation, page, state);
            }
        }
    }

    #[cold]
    fn save(&self, allocation: usize, page: usize, state: &AtomicU8) {
        if state.compare_exchange(CLEAN, SAVING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // Another thread copies 4 KiB right now.
            while state.load(Ordering::Acquire) != SAVED {
                std::hint::spin_loop();
            }
            return;
        }
        let source = &self.allocations[allocation];
        let first = page * PAGE;
        let end = (first + PAGE).min(source.words().len());
        let words = source.words()[first..end].iter().map(|w| w.load(Ordering::Relaxed)).collect();
        let groups = first / 8..end.div_ceil(8);
        let initialised = source.initialised()[groups].iter().map(|w| w.load(Ordering::Relaxed)).collect();
        let saved = Page { allocation, first, words, initialised };
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).push(saved);
        state.store(SAVED, Ordering::Release);
    }

    /// Puts everything back.
    pub fn restore(&self) {
        let pages = std::mem::take(&mut *self.pages.lock().unwrap_or_else(PoisonError::into_inner));
        let mut seen = SortedSet::new();
        for page in pages {
            debug_assert!(seen.insert((page.allocation, page.first)), "a page is saved once");
            let target = &self.allocations[page.allocation];
            for (word, value) in page.words.iter().enumerate() {
                target.words()[page.first + word].store(*value, Ordering::Relaxed);
            }
            for (group, value) in page.initialised.iter().enumerate() {
                target.initialised()[page.first / 8 + group].store(*value, Ordering::Relaxed);
            }
        }
    }
}
