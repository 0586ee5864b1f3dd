//! The one loop engine.
