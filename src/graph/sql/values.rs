//! The values of statements and of rows.

use super::{Fallible, Fault};

/// A value for a statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::graph) enum Value<'a> {
    /// None.
    Null,
    /// A number, or 0 or 1 for a truth.
    Int(i64),
    /// A number with a fraction.
    Real(f64),
    /// A text.
    Text(&'a str),
}

macro_rules! ints {
    ($($kind:ty),*) => {$(
        impl From<&$kind> for Value<'_> {
            fn from(number: &$kind) -> Self {
                // What does not fit is larger than anything that is counted.
                Self::Int(i64::try_from(*number).unwrap_or(i64::MAX))
            }
        }
    )*};
}
ints!(u8, u32, i64, usize);

impl From<&bool> for Value<'_> {
    fn from(is_so: &bool) -> Self {
        Self::Int(i64::from(*is_so))
    }
}

impl From<&f64> for Value<'_> {
    fn from(number: &f64) -> Self {
        Self::Real(*number)
    }
}

impl<'a> From<&&'a str> for Value<'a> {
    fn from(text: &&'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&&'a String> for Value<'a> {
    fn from(text: &&'a String) -> Self {
        Self::Text(text)
    }
}

macro_rules! options {
    ($($kind:ty),*) => {$(
        impl<'a> From<&'a Option<$kind>> for Value<'a> {
            fn from(value: &'a Option<$kind>) -> Self {
                value.as_ref().map_or(Self::Null, Self::from)
            }
        }
    )*};
}
options!(i64, u32, usize, f64, String);

#[expect(clippy::ref_option_ref, reason = "`values!` takes everything by reference")]
impl<'a, T: AsRef<str> + ?Sized> From<&Option<&'a T>> for Value<'a> {
    fn from(value: &Option<&'a T>) -> Self {
        value.map_or(Self::Null, |text| Self::Text(text.as_ref()))
    }
}

/// The values of a statement, in the order of `?1`, `?2` …
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        &[$($crate::graph::sql::values::Value::from(&$value)),*]
    };
}
pub(in crate::graph) use values;

/// A row that a query has found. Columns are counted from 0.
pub(in crate::graph) trait Row {
    /// A number, or a truth as 0 or 1.
    fn int(&self, at: usize) -> Fallible<Option<i64>>;
    /// A number with a fraction.
    fn real(&self, at: usize) -> Fallible<Option<f64>>;
    /// A text.
    fn text(&self, at: usize) -> Fallible<Option<String>>;
}

impl dyn Row + '_ {
    /// The value of a column.
    pub(in crate::graph) fn get<T: Column>(&self, at: usize) -> Fallible<T> {
        T::of(self, at)
    }
}

/// What a column can be read as.
pub(in crate::graph) trait Column: Sized {
    /// The value of that column.
    fn of(row: &dyn Row, at: usize) -> Fallible<Self>;
}

/// A value that has to be there.
fn there<T>(value: Option<T>, at: usize) -> Fallible<T> {
    value.ok_or_else(|| Fault::Strange(format!("nothing in column {at}")))
}

macro_rules! int_columns {
    ($($kind:ty),*) => {$(
        impl Column for $kind {
            fn of(row: &dyn Row, at: usize) -> Fallible<Self> {
                let number = there(row.int(at)?, at)?;
                Self::try_from(number).map_err(|_| Fault::Strange(format!("{number} in column {at}")))
            }
        }
    )*};
}
int_columns!(u8, u32, u64, i64, usize);

impl Column for bool {
    fn of(row: &dyn Row, at: usize) -> Fallible<Self> {
        Ok(there(row.int(at)?, at)? != 0)
    }
}

impl Column for f64 {
    fn of(row: &dyn Row, at: usize) -> Fallible<Self> {
        there(row.real(at)?, at)
    }
}

impl Column for String {
    fn of(row: &dyn Row, at: usize) -> Fallible<Self> {
        there(row.text(at)?, at)
    }
}

macro_rules! optional_columns {
    ($($kind:ty: $read:ident),*) => {$(
        impl Column for Option<$kind> {
            fn of(row: &dyn Row, at: usize) -> Fallible<Self> {
                row.$read(at)
            }
        }
    )*};
}
optional_columns!(i64: int, f64: real, String: text);
