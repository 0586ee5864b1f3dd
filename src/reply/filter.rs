//! jq programs: compiled once, run on one event at a time.

use std::fmt;

use jaq_core::data::JustLut;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars};
use jaq_json::Val;

use super::line;
use crate::text::line::one_line_within;

/// A compiled jq program. Compile it once per loop; it can be shared between threads.
///
/// The program runs in this process; a user's program needs a bounded child instead, because jq programs can exhaust
/// time, stack and memory.
pub struct JqProgram {
    filter: jaq_core::Filter<JustLut<Val>>,
}

/// A parsed JSON value, as input for several programs.
pub struct Input(Val);

/// One output of a [`JqProgram`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A string, raw.
    Text(String),
    /// Any other value, as compact JSON.
    Json(String),
}

/// Why a run of a [`JqProgram`] stopped before its last output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A jq error, such as an index into a number. jq itself prints it and continues with the next input.
    #[error("{0}")]
    Failed(String),
    /// The program called `halt`, here with this exit code.
    #[error("the filter called halt({0})")]
    Halted(i32),
}

/// A program that does not compile.
///
/// Displays as `line 1, column 5: expected term, found "|"`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct CompileError {
    /// Line of the error, from 1.
    pub line: usize,
    /// Column of the error in characters, from 1.
    pub column: usize,
    /// The message without the position.
    pub message: String,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl JqProgram {
    /// Compiles a jq program with the whole standard library of jaq.
    pub fn compile(source: &str) -> Result<Self, CompileError> {
        let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let arena = Arena::default();
        let modules = Loader::new(defs)
            .load(&arena, File { code: source, path: () })
            .map_err(|errors| CompileError::from_load(source, errors))?;
        let filter = Compiler::default()
            .with_funs(funs)
            .compile(modules)
            .map_err(|errors| CompileError::from_compile(source, errors))?;
        Ok(Self { filter })
    }

    /// Runs the program on one event and passes its outputs on one by one.
    ///
    /// The outputs before an error are passed on.
    pub fn run(&self, event: &Input, out: &mut dyn FnMut(Output)) -> Result<(), RunError> {
        let ctx = Ctx::<JustLut<Val>>::new(&self.filter.lut, Vars::new([]));
        for result in self.filter.id.run((ctx, event.0.clone())) {
            match result {
                Ok(value) => out(Output::from_value(value)),
                Err(exception) => return Err(RunError::from_exception(exception)),
            }
        }
        Ok(())
    }
}

impl fmt::Debug for JqProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JqProgram")
    }
}

impl Input {
    /// Parses one line as JSON. Invalid UTF-8 and lone surrogates are tolerated; `None` if it is not JSON, or is
    /// nested too deeply for the stack.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        if line::too_deep(line) {
            return None;
        }
        jaq_json::read::parse_single(line)
            .or_else(|_| jaq_json::read::parse_single(&line::without_lone_surrogates(line)))
            .ok()
            .map(Self)
    }
}

impl Output {
    fn from_value(value: Val) -> Self {
        match value {
            Val::TStr(bytes) | Val::BStr(bytes) => Self::Text(lossy(bytes.to_vec())),
            other => Self::Json(other.to_string()),
        }
    }
}

impl RunError {
    fn from_exception(exception: jaq_core::Exn<'_, Val>) -> Self {
        match exception.get_err() {
            Ok(error) => Self::Failed(error.to_string()),
            // A compiled program returns only errors and halts.
            Err(other) => other.get_halt().map_or(Self::Failed("break".into()), Self::Halted),
        }
    }
}

impl CompileError {
    fn from_load(source: &str, errors: load::Errors<&str, ()>) -> Self {
        let first = errors.into_iter().find_map(|(_, error)| match error {
            load::Error::Io(errors) => errors.into_iter().next(),
            load::Error::Lex(errors) => errors
                .into_iter()
                .next()
                .map(|(expected, found)| (found, expected_found(expected.as_str(), found))),
            load::Error::Parse(errors) => errors
                .into_iter()
                .next()
                .map(|(expected, found)| (found, expected_found(expected.as_str(), found))),
        });
        Self::at(source, first)
    }

    fn from_compile(source: &str, errors: jaq_core::compile::Errors<&str, ()>) -> Self {
        let first = errors.into_iter().find_map(|(_, errors)| errors.into_iter().next());
        Self::at(source, first.map(|(name, kind)| (name, format!("undefined {} \"{name}\"", kind.as_str()))))
    }

    fn at(source: &str, error: Option<(&str, String)>) -> Self {
        let (piece, message) = error.unwrap_or(("", "not a jq program".into()));
        // An error outside of the source, which should not happen, is reported at the start.
        let before = (piece.as_ptr() as usize)
            .checked_sub(source.as_ptr() as usize)
            .and_then(|offset| source.get(..offset))
            .unwrap_or("");
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Self { line, column, message }
    }
}

fn expected_found(expected: &str, found: &str) -> String {
    let piece = found.lines().next().unwrap_or("");
    match piece {
        "" => format!("expected {expected}, found the end of the program"),
        _ => format!("expected {expected}, found \"{}\"", one_line_within(piece, 40)),
    }
}

/// The bytes as a string, without a copy if they are UTF-8.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(program: &str, input: &str) -> (Vec<Output>, Result<(), RunError>) {
        let mut all = Vec::new();
        let program = JqProgram::compile(program).unwrap();
        let result = program.run(&Input::parse(input.as_bytes()).unwrap(), &mut |output| all.push(output));
        (all, result)
    }

    #[test]
    fn programs_are_send_and_sync() {
        fn check<T: Send + Sync>() {}
        check::<JqProgram>();
    }

    #[test]
    fn prints_strings_raw_and_everything_else_as_compact_json() {
        let (all, result) = outputs(".[]", r#"["a\nb", {"k": [1, 2.50]}, null]"#);
        assert_eq!(result, Ok(()));
        let json = |text: &str| Output::Json(text.into());
        assert_eq!(all, [Output::Text("a\nb".into()), json(r#"{"k":[1,2.50]}"#), json("null")]);
    }

    #[test]
    fn keeps_the_outputs_before_an_error() {
        let (all, result) = outputs("1, .a.b, 2", r#"{"a": 5}"#);
        assert_eq!(all, [Output::Json("1".into())]);
        assert!(matches!(result, Err(RunError::Failed(_))), "{result:?}");
    }

    #[test]
    fn halt_ends_the_run_and_not_this_process() {
        assert_eq!(outputs("1, halt", "null").1, Err(RunError::Halted(0)));
        assert_eq!(outputs("halt_error", "\"x\"").1, Err(RunError::Halted(5)));
    }

    #[test]
    fn a_compile_error_shows_the_position_and_the_piece() {
        let message = |source: &str| JqProgram::compile(source).unwrap_err().to_string();
        assert_eq!(message(".a | | .b"), "line 1, column 6: expected term, found \"|\"");
        assert_eq!(message(".a\n| nosuch"), "line 2, column 3: undefined filter \"nosuch\"");
        assert_eq!(
            message("select(.a"),
            "line 1, column 10: expected closing parenthesis, found the end of the program"
        );
        assert_eq!(message(""), "line 1, column 1: expected term, found the end of the program");
        assert_eq!(message("\"é\" | $x"), "line 1, column 7: undefined variable \"$x\"");
        assert_eq!(message(".a ; .b"), "line 1, column 4: expected nothing, found \";\"");
    }

    #[test]
    fn tolerates_lone_surrogates_and_invalid_utf8() {
        let program = JqProgram::compile(".t").unwrap();
        for (line, text) in [
            (br#"{"t":"a\ud83d b"}"#.as_slice(), "a\u{fffd} b"),
            (br#"{"t":"a\ude00 b"}"#, "a\u{fffd} b"),
            (br#"{"t":"\ud83d\ude00\ud83dA"}"#, "😀\u{fffd}A"),
            (b"{\"t\":\"a\xff b\"}", "a\u{fffd} b"),
        ] {
            let mut all = Vec::new();
            program.run(&Input::parse(line).unwrap(), &mut |output| all.push(output)).unwrap();
            assert_eq!(all, [Output::Text(text.into())]);
        }
    }

    #[test]
    fn refuses_what_is_no_json_or_nested_too_deeply() {
        assert!(Input::parse(b"{\"t\":").is_none());
        assert!(Input::parse("[".repeat(1_000_000).as_bytes()).is_none());
        let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
        assert!(Input::parse(&deep).is_none());
        assert!(Input::parse(br#""[[[[[[""#).is_some());
    }
}
