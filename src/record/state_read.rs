//! Reads state files: our own, those of workers, and those of an older program.

use std::path::Path;

use serde::Deserialize;

use super::older_state;
use super::plain_toml;
use super::state::{State, VERSION};
use super::state_head::Head;
use super::state_seal::Seal;
use super::worker_file;
use crate::files::own;
use crate::version;

/// Larger files are not states, in bytes.
const LARGEST: u64 = 64 << 20;

/// Whether a file of the run dir is the state, one that was set aside, or an unfinished one.
#[must_use]
pub fn is_state(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let rest = name.and_then(|name| name.strip_prefix("state.toml").or(name.strip_prefix("state.json")));
    let Some(rest) = rest else { return false };
    // `.YYYYMMDD-HHMMSSmmm`
    let is_aside = rest.strip_prefix('.').is_some_and(|stamp| {
        stamp.len() == 18 && stamp.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    });
    rest.is_empty() || is_aside || rest.starts_with('.') && path.extension().is_some_and(|end| end == "tmp")
}

/// The content of a state file.
#[derive(Debug)]
pub enum Found {
    /// No file.
    Nothing,
    /// A readable state.
    State(Box<State>),
    /// A torn or emptied file, with a description.
    Damaged(String),
    /// A state of an older program, with a description.
    Unknown(String),
    /// A state of a newer ralph, with a description: this one changes nothing of it.
    Newer(String),
}

impl Found {
    /// The state, if it is readable.
    #[must_use]
    pub fn state(&self) -> Option<&State> {
        match self {
            Self::State(state) => Some(state),
            Self::Nothing | Self::Damaged(_) | Self::Unknown(_) | Self::Newer(_) => None,
        }
    }
}

/// How much of a state file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// For an ended loop, only what lists show, with defaults for the rest. For any other loop, all of it.
    Head,
}

/// Reads a state file.
///
/// # Errors
/// If it exists and cannot be read.
pub fn read(path: &Path, extent: Extent) -> std::io::Result<Found> {
    let text = match own::read(path, LARGEST) {
        Ok(bytes) => String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    Ok(of_text(&text, is_json(path), extent))
}

/// Reads the text of a state file.
pub(crate) fn of_text(text: &str, is_json: bool, extent: Extent) -> Found {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
        #[serde(default)]
        ralph: String,
    }
    if is_json {
        return read_json(text);
    }
    let head = text.find("\n[given]").filter(|_| extent == Extent::Head).map(|end| &text[..=end]);
    // If the rest of the file does not begin with these words, the text before them is not a whole state.
    let head = head
        .and_then(|head| plain_toml::read(head).or_else(|| toml::from_str::<Head>(head).ok()))
        .filter(|head| !head.active);
    let state = head.map(State::from);
    match state.map_or_else(|| toml::from_str::<State>(text), Ok) {
        Ok(state) if state.version > VERSION => newer(state.version, &state.ralph),
        Ok(state) => {
            let seal = Seal::of(text).filter(|_| extent == Extent::Whole);
            Found::State(Box::new(State { seal: seal.map(Box::new), ..state }))
        }
        Err(_) if text.trim().is_empty() => Found::Damaged("it is empty".to_owned()),
        Err(error) => match (toml::from_str::<Versioned>(text), older_state::read(text)) {
            (Ok(Versioned { version, ralph }), _) if version > VERSION => newer(version, &ralph),
            (Err(_), Some(older)) => Found::State(Box::new(older)),
            _ => Found::Damaged(format!("it is damaged: {}", error.message())),
        },
    }
}

/// A state of a later version of the format, which this ralph wrote.
fn newer(version: u32, ralph: &str) -> Found {
    Found::Newer(version::newer(version.into(), VERSION.into(), ralph).to_string())
}

/// Workers have a JSON state.
pub(super) fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

fn read_json(text: &str) -> Found {
    #[derive(Deserialize)]
    struct Versioned {
        version: Option<u32>,
        #[serde(default, rename = "loop")]
        state: Option<Writer>,
    }
    #[derive(Deserialize)]
    struct Writer {
        #[serde(default)]
        ralph: String,
    }
    if text.trim().is_empty() {
        return Found::Damaged("it is empty".to_owned());
    }
    match (worker_file::read(text), serde_json::from_str::<Versioned>(text)) {
        (_, Ok(Versioned { version: Some(version), state })) if version > VERSION => {
            newer(version, &state.map(|state| state.ralph).unwrap_or_default())
        }
        (Ok(state), _) => Found::State(Box::new(state)),
        (Err(_), Ok(Versioned { version: None, .. })) => {
            Found::Unknown("it was written by an older program, whose workers cannot be resumed".to_owned())
        }
        (Err(error), _) => Found::Damaged(format!("it is damaged: {error}")),
    }
}
