//! Presets: what ralph knows about each agent, as data.
