//! Pure prompt transformations.
