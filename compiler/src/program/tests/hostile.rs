//! Hostile input: no panic, no hang.
