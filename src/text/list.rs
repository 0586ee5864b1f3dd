//! Lists of names in messages.

/// The first `at_most` names with commas, and how many more there are: `a, b and 3 more`.
#[must_use]
pub(crate) fn some_of<S: AsRef<str>>(names: impl IntoIterator<Item = S>, at_most: usize) -> String {
    let mut names = names.into_iter();
    let some: Vec<S> = names.by_ref().take(at_most).collect();
    let some: Vec<&str> = some.iter().map(S::as_ref).collect();
    some.join(", ") + &and_more(names.count())
}

/// The end of a list of which `count` names are not shown: ` and 3 more`; empty for none.
#[must_use]
pub(crate) fn and_more(count: usize) -> String {
    if count > 0 { format!(" and {count} more") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_counted() {
        assert_eq!(some_of(["a", "b"], 2), "a, b");
        assert_eq!(some_of(["a", "b", "c", "d"].map(str::to_owned), 2), "a, b and 2 more");
        assert_eq!(some_of([""; 0], 2), "");
    }
}
