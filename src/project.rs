//! Where things are: project root, ralph dir, every path.
