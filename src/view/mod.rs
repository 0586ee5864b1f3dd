//! Pure render of events and state.
