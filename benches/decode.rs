//! How fast a stream is decoded: claude's format, tool results of several sizes with some text between them.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use ralph::agent::preset::preset;
use ralph::reply::Reply;
use ralph::reply::decode::Decoder;
use ralph::reply::filter::Program;

const STREAM: usize = 20_000_000;

fn main() {
    divan::main();
}

/// About [`STREAM`] bytes: four tool calls with results of `size` bytes for every block of text.
fn stream(size: usize) -> String {
    let output = r#"    let answer = lookup(\"question\", 42);\n"#.repeat(size / 42);
    let tool = r#"{"type":"assistant","message":{"id":"m","model":"o","content":[{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"src/main.rs"}}]},"parent_tool_use_id":null,"session_id":"s"}"#;
    let result = format!(
        r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"t","type":"tool_result","content":"{output}"}}]}},"session_id":"s"}}"#
    );
    let text = r#"{"type":"assistant","message":{"id":"m","model":"o","content":[{"type":"text","text":"Reading on, nothing found yet."}]},"parent_tool_use_id":null,"session_id":"s"}"#;
    let round = format!("{}{text}\n", format!("{tool}\n{result}\n").repeat(4));
    round.repeat(STREAM / round.len() + 1)
}

#[divan::bench(args = [2_000, 50_000, 1_000_000])]
fn decode(bencher: Bencher<'_, '_>, size: usize) {
    let stream = stream(size);
    let compiled = preset("claude").and_then(|preset| preset.compile().ok()).expect("the preset compiles");
    bencher.counter(BytesCount::new(stream.len())).bench(|| {
        let (mut decoder, mut reply) = (Decoder::new(compiled.filters()), Reply::default());
        for chunk in black_box(stream.as_bytes()).chunks(64 << 10) {
            decoder.push(chunk, &mut |item| reply.fold(&item));
        }
        decoder.finish(&mut |item| reply.fold(&item));
        reply
    });
}

#[divan::bench]
fn compile(bencher: Bencher<'_, '_>) {
    bencher.bench(|| Program::compile(black_box(".message.content[]? | .text")));
}
