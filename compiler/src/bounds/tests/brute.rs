//! Verdicts against enumeration.
