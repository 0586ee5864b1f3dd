//! Event consumers and their files.
