//! Checks an agent over the Agent Client Protocol: it introduces itself in a session that is closed again.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{DoctorOptions, Finding};
use crate::agent::acp::{Introduction, Login, VisitError, introduce};
use crate::process::launch::Launch;
use crate::project::Project;
use crate::reply::usage::Class;
use crate::reply::verdict::RootRefusal;
use crate::text::duration;
use crate::text::line::one_line_within;
use crate::text::list::some_of;

/// How long it may take to open a session, with all of its answers: the first start of an adapter after its installation takes
/// seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// How many models are named.
const MODELS: usize = 8;
/// The longest name with a version that is shown, in characters.
const NAME: usize = 80;
/// The longest message that is shown, in characters.
const MESSAGE: usize = 300;

/// Opens a session with the agent at `path`, and closes it.
pub(super) fn check(path: &Path, project: &Project, options: &DoctorOptions) -> Vec<Finding> {
    let launch = Launch {
        program: path.into(),
        args: options.args.clone(),
        cwd: project.root().to_owned(),
        env: options.env.clone(),
        // So that nothing outlives a killed supervisor.
        mark: format!("doctor-{}", std::process::id()),
        ..Launch::default()
    };
    let began = Instant::now();
    let mut version = None;
    let met = introduce(&launch, options.timeout.unwrap_or(LIMIT), &mut version);
    // It names its version before it asks for a login.
    let version = match (version.as_deref(), &met) {
        (Some(version), _) => format!(", {}", one_line_within(version, NAME)),
        (None, Ok(_)) => ", version unknown".to_owned(),
        (None, Err(_)) => String::new(),
    };
    let mut findings = vec![Finding::ok("agent", format!("{}{version}, {}", options.agent, path.display()))];
    match met {
        Ok(introduction) => findings.extend(introduced(&introduction, began.elapsed(), options)),
        Err(why) => findings.push(not_introduced(&why, options)),
    }
    findings
}

/// What makes a verifying agent read-only: its mode, if it has one, and our refusals.
fn verifying(introduction: &Introduction, options: &DoctorOptions) -> Finding {
    let agent = &options.agent;
    let Some(mode) = &introduction.quiet_mode else {
        let says = format!(
            "{agent} has no mode in which it only looks: where it verifies a task, ralph refuses what it asks leave for, \
             and what it changes all the same is noticed, and does not count"
        );
        return Finding::ok("verifying", says);
    };
    let says = format!(
        "{agent} verifies tasks in its mode '{mode}', and ralph writes nothing for it; whether it can run the tests there \
         depends on the agent"
    );
    Finding::ok("verifying", says)
}

/// Whether a user is logged in, by the agent's report.
fn login(introduction: &Introduction, options: &DoctorOptions) -> Finding {
    match (&introduction.key, &introduction.login) {
        (_, Login::Missing) => {
            Finding::fail("login", "the agent says that no user is logged in", how_to_log_in(options))
        }
        (Some(method), _) => {
            Finding::ok("login", format!("by its method '{method}', with a key of the environment"))
        }
        (None, Login::Known(label)) => {
            Finding::ok("login", format!("the agent says: {}", one_line_within(label, MESSAGE)))
        }
        (None, Login::Unknown) => {
            let says = "unknown: it opens a session without asking for one, and says nothing of it";
            Finding::warn("login", says, how_to_log_in(options))
        }
    }
}

fn how_to_log_in(options: &DoctorOptions) -> &'static str {
    match options.preset.login {
        "" => "log in as the agent's own guide says, or set the key that it reads",
        login => login,
    }
}

fn introduced(introduction: &Introduction, took: Duration, options: &DoctorOptions) -> Vec<Finding> {
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
    vec![
        Finding::ok("session", format!("opened in {}; {mode}, {quiet}", duration::elapsed_tenths(took))),
        Finding::ok("models", models),
        login(introduction, options),
        verifying(introduction, options),
    ]
}

fn not_introduced(why: &VisitError, options: &DoctorOptions) -> Finding {
    let said = one_line_within(&why.to_string(), MESSAGE);
    let refuses_root = |refusal: &RootRefusal| match why {
        VisitError::Refused { message, .. } => message.contains(refusal.says),
        _ => false,
    };
    if let Some(refusal) = options.preset.asides.root.filter(refuses_root) {
        return Finding::fail(
            "root",
            format!("{} opens no session as root", options.agent),
            refusal.way_out(),
        );
    }
    match why {
        VisitError::Refused { class: Class::Auth, .. } => Finding::fail(
            "login",
            format!("the agent opens no session without one: {said}"),
            how_to_log_in(options),
        ),
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
