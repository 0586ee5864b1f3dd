//! Starts, supervises and ends programs.
