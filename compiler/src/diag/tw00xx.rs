//! TW00: syntax.
