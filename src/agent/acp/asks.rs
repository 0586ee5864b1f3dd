//! What an agent may ask of us: leave to do something, files to read and write.

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, ReadTextFileRequest, RequestPermissionRequest, ToolKind,
    WriteTextFileRequest,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::Grounds;
use super::error::Refusal;
use super::files::Files;
use crate::agent::codec::Turn;
use crate::reply::decode::Item;
use crate::reply::show::Show;
use crate::text::line::one_line_within;

/// So much of what leave is asked for is told, in characters.
const TITLE: usize = 120;

/// Answers what is asked.
pub(super) struct Asks {
    files: Files,
    /// Nothing may be changed.
    read_only: bool,
}

impl Asks {
    pub(super) fn new(grounds: &Grounds, read_only: bool) -> Self {
        Self { files: Files::new(grounds), read_only }
    }

    /// The result of a request, or why there is none.
    pub(super) fn answer(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        turn: &mut Turn,
    ) -> Result<Box<RawValue>, Refusal> {
        match method {
            "session/request_permission" => Ok(self.leave(&read(params)?, turn)),
            "fs/read_text_file" => {
                let ReadTextFileRequest { path, line, limit, .. } = read(params)?;
                let content = self.files.read(&path, line, limit)?;
                Ok(raw(&json!({ "content": content })))
            }
            "fs/write_text_file" if self.read_only => {
                Err(Refusal::because("this session may look at files and change none"))
            }
            "fs/write_text_file" => {
                let WriteTextFileRequest { path, content, .. } = read(params)?;
                self.files.write(&path, &content)?;
                Ok(raw(&json!(null)))
            }
            _ => Err(Refusal::method(method)),
        }
    }

    /// Gives leave, or not; nobody is there to be asked.
    fn leave(&self, request: &RequestPermissionRequest, turn: &mut Turn) -> Box<RawValue> {
        let fields = &request.tool_call.fields;
        let kind = fields.kind.unwrap_or_default();
        let is_granted = !self.read_only || changes_nothing(kind);
        let option = chosen(&request.options, is_granted);
        let title = one_line_within(fields.title.as_deref().unwrap_or("something"), TITLE);
        let said = match (is_granted, option) {
            (true, Some(_)) => "allowed",
            (false, Some(_)) => "refused, it may only look",
            (_, None) => "not answered, no answer fits",
        };
        turn.item(Item::Show(Show::Notice(format!("{said}: {title}"))));
        raw(&match option {
            Some(option) => json!({ "outcome": { "outcome": "selected", "optionId": option.option_id } }),
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        })
    }
}

/// Whether a tool of this kind leaves files as they are. One that switches the mode may offer to ask nobody any more.
fn changes_nothing(kind: ToolKind) -> bool {
    matches!(kind, ToolKind::Read | ToolKind::Search | ToolKind::Think | ToolKind::Fetch | ToolKind::Execute)
}

/// The option that grants or refuses, by its kind: once before always.
fn chosen(options: &[PermissionOption], is_granted: bool) -> Option<&PermissionOption> {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let kinds = if is_granted { [AllowOnce, AllowAlways] } else { [RejectOnce, RejectAlways] };
    kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind))
}

fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, Refusal> {
    let params = params.ok_or_else(|| Refusal::params("there are none"))?;
    serde_json::from_str(params.get()).map_err(|error| Refusal::params(&error.to_string()))
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    // Values of JSON: that cannot fail, and null is the answer of those who have none.
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
