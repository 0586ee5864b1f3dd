//! Every call of git, in one place.
