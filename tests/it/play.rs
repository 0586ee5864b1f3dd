//! Plays a stream through a preset's filters, as an attempt does.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ralph::presets::{self, Compiled, Preset};
use ralph::reply::Reply;
use ralph::reply::decode::{Counters, Decoder, Item};
use ralph::reply::show::Show;
use ralph::reply::verdict::{AgentEnd, Evidence, Failure, Readers, judge};

/// The results of a stream.
pub(crate) struct Played {
    pub(crate) text: String,
    pub(crate) shows: Vec<Show>,
    pub(crate) reply: Reply,
    pub(crate) counters: Counters,
    pub(crate) verdict: Result<(), Failure>,
}

/// Every preset with its filters: compiling them takes longer than most streams.
static PRESETS: LazyLock<BTreeMap<&str, (&Preset, Compiled)>> = LazyLock::new(|| {
    let presets = presets::all();
    presets.map(|preset| (preset.name, (preset, preset.compile().unwrap()))).collect()
});

/// Plays a stream in pieces of `step` bytes.
pub(crate) fn play(agent: &str, stdout: &[u8], stderr: &str, end: AgentEnd, step: usize) -> Played {
    let (preset, compiled) = &PRESETS[agent];
    let mut decoder = Decoder::new(compiled.filters());
    let (mut reply, mut text, mut shows) = (Reply::default(), String::new(), Vec::new());
    let mut take = |item: Item| {
        reply.fold(&item);
        match item {
            Item::Text(piece) => text.push_str(&piece),
            Item::Show(show) => shows.push(show),
            Item::Note(_) => {}
        }
    };
    stdout.chunks(step).for_each(|chunk| decoder.push(chunk, &mut take));
    decoder.finish(&mut take);
    let verdict = judge(&Evidence {
        agent,
        end,
        readers: Readers::Preset,
        has_final: preset.has_final,
        final_seen: reply.usage.final_seen,
        said: reply.said,
        counters: decoder.counters(),
        fault: reply.usage.fault.as_ref(),
        dead_filter: decoder.dead_filter(),
        asides: preset.asides,
        stderr_tail: stderr,
        class_of_words: ralph::presets::fault::class_of_words,
    });
    Played { text, shows, reply, counters: decoder.counters(), verdict }
}
