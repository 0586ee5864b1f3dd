//! An agent behind the Agent Client Protocol: it introduces itself in a session that is closed again.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{DoctorOptions, Finding};
use crate::agent::acp::{Introduction, VisitError, introduce};
use crate::process::launch::Launch;
use crate::project::Project;
use crate::reply::usage::Class;
use crate::text::duration;
use crate::text::line::one_line_within;
use crate::text::list::some_of;

/// How long it may take to open a session: the first start of an adapter after its installation takes seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// So many models are named.
const MODELS: usize = 8;
/// The longest message that is shown, in characters.
const MESSAGE: usize = 300;

/// Opens a session with the agent at `path`, and closes it.
pub(super) fn check(path: &Path, project: &Project, options: &DoctorOptions) -> Vec<Finding> {
    let launch = Launch {
        program: path.into(),
        args: options.args.clone(),
        cwd: project.root().to_owned(),
        env: options.env.clone(),
        ..Launch::default()
    };
    let began = Instant::now();
    match introduce(&launch, LIMIT) {
        Ok(introduction) => introduced(&introduction, began.elapsed(), path, options),
        Err(why) => vec![
            Finding::ok("agent", format!("{}, {}", options.agent, path.display())),
            not_introduced(&why, options),
        ],
    }
}

fn introduced(
    introduction: &Introduction,
    took: Duration,
    path: &Path,
    options: &DoctorOptions,
) -> Vec<Finding> {
    let name = introduction.agent.as_deref().unwrap_or("no version told");
    let mode = introduction
        .mode
        .as_ref()
        .map_or_else(|| "works in its own mode".to_owned(), |mode| format!("works in its mode '{mode}'"));
    let quiet = introduction.quiet_mode.as_ref().map_or_else(
        || "has none in which it only looks".to_owned(),
        |mode| format!("only looks in '{mode}'"),
    );
    let models = match introduction.models.as_slice() {
        [] => "it offers no choice: --model cannot be used".to_owned(),
        models => some_of(models, MODELS),
    };
    let login = introduction.key.as_ref().map_or_else(
        || "it opens a session without asking for one".to_owned(),
        |method| format!("by its method '{method}', with a key of the environment"),
    );
    vec![
        Finding::ok("agent", format!("{}, {name}, {}", options.agent, path.display())),
        Finding::ok("session", format!("opened in {}; {mode}, {quiet}", duration::elapsed_tenths(took))),
        Finding::ok("models", models),
        Finding::ok("login", login),
    ]
}

fn not_introduced(why: &VisitError, options: &DoctorOptions) -> Finding {
    let said = one_line_within(&why.to_string(), MESSAGE);
    let root_refusal = options.preset.asides.root_refusal;
    match why {
        VisitError::Refused { message, .. } if !root_refusal.is_empty() && message.contains(root_refusal) => {
            let fix = "run as a normal user; if this really is a sandbox, set IS_SANDBOX=1 yourself";
            Finding::fail("root", format!("{} opens no session as root", options.agent), fix)
        }
        VisitError::Refused { class: Class::Auth, .. } => {
            let login = if options.preset.login.is_empty() {
                "log in as the agent's own guide says, or set the key that it reads"
            } else {
                options.preset.login
            };
            Finding::fail("login", format!("the agent opens no session without one: {said}"), login)
        }
        _ => Finding::fail("session", format!("the agent opens none: {said}"), by_hand(options)),
    }
}

fn by_hand(options: &DoctorOptions) -> String {
    let program = options.program.as_deref().unwrap_or_default();
    format!(
        "run '{program}' by hand: it has to speak the Agent Client Protocol over stdin and stdout, and to print \
         nothing else there"
    )
}
