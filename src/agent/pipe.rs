//! The pipe: a prompt on an agent's stdin, JSON lines on its stdout.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::balance::BalanceQuery;
use super::display::DisplayRoute;
use super::message::Message;
use super::readers::ReaderPlan;
use super::report::{AttemptStatus, Balance, Report};
use super::threads;
use super::{Agent, AgentError, Attempt, Context};
use crate::engine::event::{Event, Stream};
use crate::engine::inbox::Wake;
use crate::engine::stop::Urgency;
use crate::process::supervised::{Launch, Supervised};
use crate::process::supervisor::Note;
use crate::process::tree;
use crate::record::RecordError;
use crate::reply::decode::{Counters, Item};
use crate::reply::sigil::SigilScanner;
use crate::reply::usage::{Class, Usage};
use crate::reply::verdict::{End, Evidence, Kind, judge};
use crate::settings::duration::format_duration;

/// How long an agent may live on after its own final event.
const FINAL_GRACE: Duration = Duration::from_secs(10);
/// How long the pipes of an agent that is gone may stay silent before we stop listening.
const DRAIN: Duration = Duration::from_secs(1);
/// After this much time the ladder must have ended; then the supervisor itself is given up.
const LADDER_LIMIT: Duration = Duration::from_secs(12);
/// How much of stderr is kept for the failure message.
const STDERR_TAIL: usize = 4096;
/// Tools that use more than this share of a core are at work.
const BUSY_CORE: f64 = 0.05;

/// An agent behind a pipe, with everything about it resolved.
#[derive(Debug)]
pub struct PipeAgent {
    /// What to call it.
    pub name: String,
    /// How it is started.
    pub launch: Launch,
    /// Who reads its stream.
    pub readers: ReaderPlan,
    /// Who renders it for the live display.
    pub display: DisplayRoute,
    /// How its account's balance is asked for.
    pub balance: Option<BalanceQuery>,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// How long it may show no sign of life.
    pub inactivity_timeout: Duration,
}
