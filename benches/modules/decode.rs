//! How fast the streams of agents are decoded.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use ralph::presets::preset;
use ralph::reply::Reply;
use ralph::reply::decode::Decoder;
use ralph::reply::filter::JqProgram;

const STREAM: usize = 20_000_000;

/// claude's format: four tool calls with results of `size` bytes for every short block of text.
#[divan::bench(args = [2_000, 50_000, 1_000_000])]
fn tool_results(bencher: Bencher<'_, '_>, size: usize) {
    let output = r#"    let answer = lookup(\"question\", 42);\n"#.repeat(size / 42);
    let tool =
        claude_says(r#"{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"src/main.rs"}}"#);
    let result = format!(
        r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"t","type":"tool_result","content":"{output}"}}]}},"session_id":"s"}}"#
    );
    let text = claude_says(r#"{"type":"text","text":"Reading on, nothing found yet."}"#);
    decode(bencher, "claude", &format!("{}{text}\n", format!("{tool}\n{result}\n").repeat(4)));
}

/// claude's format: nothing but blocks of text of `size` bytes.
#[divan::bench(args = [100, 1_000])]
fn text_blocks(bencher: Bencher<'_, '_>, size: usize) {
    let text = "It is done.\\n".repeat(size / 13);
    decode(bencher, "claude", &(claude_says(&format!(r#"{{"type":"text","text":"{text}"}}"#)) + "\n"));
}

/// gemini's format: text in deltas of a few words.
#[divan::bench]
fn deltas(bencher: Bencher<'_, '_>) {
    let line = r#"{"type":"message","timestamp":"2026-01-01T00:00:00Z","role":"assistant","content":"a few words ","delta":true}"#;
    decode(bencher, "gemini", &format!("{line}\n"));
}

#[divan::bench]
fn compile(bencher: Bencher<'_, '_>) {
    bencher.bench(|| JqProgram::compile(black_box(".message.content[]? | .text")));
}

fn claude_says(block: &str) -> String {
    let usage = r#"{"input_tokens":4,"cache_creation_input_tokens":812,"cache_read_input_tokens":20312,"output_tokens":151}"#;
    format!(
        r#"{{"type":"assistant","message":{{"id":"m","type":"message","role":"assistant","model":"o","content":[{block}],"usage":{usage}}},"parent_tool_use_id":null,"session_id":"s"}}"#
    )
}

/// Decodes about [`STREAM`] bytes of these lines.
fn decode(bencher: Bencher<'_, '_>, agent: &str, lines: &str) {
    let stream = lines.repeat(STREAM / lines.len() + 1);
    let compiled = preset(agent).and_then(|preset| preset.compile().ok()).expect("the preset compiles");
    bencher.counter(BytesCount::new(stream.len())).bench(|| {
        let (mut decoder, mut reply) = (Decoder::new(compiled.filters()), Reply::default());
        for chunk in black_box(stream.as_bytes()).chunks(64 << 10) {
            decoder.push(chunk, &mut |item| reply.fold(&item));
        }
        decoder.finish(&mut |item| reply.fold(&item));
        reply
    });
}
