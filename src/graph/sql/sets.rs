//! What is set in the row of one task, in one statement.

use std::fmt::Write as _;

use super::values::Value;
use super::{Fallible, Sql};

/// Columns of a task, and what they become.
#[derive(Debug, Default)]
pub(in crate::graph) struct Sets<'a> {
    text: String,
    columns: Vec<&'static str>,
    values: Vec<Value<'a>>,
}

impl<'a> Sets<'a> {
    /// With a column that becomes a value.
    pub(super) fn set(mut self, column: &'static str, value: impl Into<Value<'a>>) -> Self {
        self.values.push(value.into());
        // The first value is the task's number.
        let becomes = format!("?{}", self.values.len() + 1);
        self.and(column, &becomes)
    }

    /// With a column that becomes what an expression without a value says.
    pub(super) fn and(mut self, column: &'static str, becomes: &str) -> Self {
        let comma = if self.columns.is_empty() { "" } else { ", " };
        // Writing into a text does not fail.
        let _ = write!(self.text, "{comma}{column} = {becomes}");
        self.columns.push(column);
        self
    }

    /// With a column that becomes what an expression says, where nothing is said about it before.
    pub(super) fn or(self, column: &'static str, becomes: &str) -> Self {
        if self.columns.contains(&column) { self } else { self.and(column, becomes) }
    }

    /// Writes them into the row of a task, if there are any.
    pub(super) fn write(&self, graph: &dyn Sql, seq: i64) -> Fallible<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let values: Vec<Value<'_>> =
            [Value::from(&seq)].into_iter().chain(self.values.iter().copied()).collect();
        graph.execute(&format!("UPDATE tasks SET {} WHERE seq = ?1", self.text), &values)
    }
}
