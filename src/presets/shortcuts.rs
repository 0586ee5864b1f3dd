//! Shortcuts must give the results of the filters.

use std::path::Path;

use super::{Compiled, preset};
use crate::reply::decode::{Decoder, Filters, Item};

fn items(filters: Filters, line: &str) -> Vec<Item> {
    let (mut decoder, mut items) = (Decoder::new(filters), Vec::new());
    decoder.push(line.as_bytes(), &mut |item| items.push(item));
    decoder.finish(&mut |item| items.push(item));
    items
}

/// Whether the shortcut was taken, which must give the result of the filters.
fn taken(compiled: &Compiled, line: &str) -> bool {
    let the_long_way = items(Filters { shortcut: None, ..compiled.filters() }, line);
    assert_eq!(items(compiled.filters(), line), the_long_way, "{line}");
    let (kind, shortcut) = compiled.shortcut.unwrap();
    line.contains(&format!(r#""type":"{kind}""#)) && shortcut(line.as_bytes()).is_some()
}

#[test]
fn recordings_read_the_same_either_way() {
    for agent in ["claude", "gemini"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(agent);
        let recordings = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let streams: Vec<String> = recordings
            .filter(|path| path.extension().is_some_and(|extension| extension == "ndjson"))
            .map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned())
            .collect();
        let preset = preset(agent).unwrap().compile().unwrap();
        let count = streams.iter().flat_map(|text| text.lines()).filter(|line| taken(&preset, line)).count();
        assert!(count > 5, "{agent}: {count}");
    }
}

/// The possible text between the brackets of a message's content.
const ODD_BLOCKS: [&str; 22] = [
    r#"{"type":"text","text":"a\n\u0041 <promise>COMPLETE</promise> é"}"#,
    r#"{"type":"text","text":""}"#,
    r#"{"type":"text","text":null}"#,
    r#"{"type":"text","text":5}"#,
    r#"{"type":"text","text":"\ud83d"}"#,
    r#"{"type":"text"}"#,
    r#"{"text":"a"}"#,
    r#"{"type":"text","type":"tool_use","text":"a"}"#,
    r#"{"type":"thinking","text":"a"}"#,
    r#"{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls\n-l","timeout":2.50}}"#,
    r#"{"type":"tool_use","id":"t","name":"X","input":{"a":[1,2.50,1e1000,12345678901234567890123]}}"#,
    r#"{"type":"tool_use","id":"t","name":"X","input":{"b":1.10,"a":12345678901234567890123}}"#,
    r#"{"type":"tool_use","id":"t","name":"X","input":{"a":1,"a":2}}"#,
    r#"{"type":"tool_use","id":"t","name":"X","input":null}"#,
    r#"{"type":"tool_use","id":"t","name":"X"}"#,
    r#"{"type":"tool_use","id":"t","input":{}}"#,
    r#"{"type":"tool_use","name":"X","input":{}}"#,
    r#"{"type":"tool_use","id":7,"name":"X","input":{}}"#,
    r#"{"type":"text","text":"a"},{"type":"text","text":"b"}"#,
    r#"{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"X","input":{}}"#,
    "",
    "null",
];

#[test]
fn odd_usages_read_the_same_either_way() {
    let claude = preset("claude").unwrap().compile().unwrap();
    let usages = [
        "",
        r#""usage":{"input_tokens":1,"cache_read_input_tokens":20,"output_tokens":5},"#,
        r#""usage":null,"#,
        r#""usage":{},"#,
        r#""usage":{"input_tokens":1.5},"#,
        r#""usage":{"input_tokens":-1},"#,
        r#""usage":{"input_tokens":"a"},"#,
        r#""usage":{"input_tokens":4294967296,"cache_creation_input_tokens":null},"#,
        r#""usage":5,"#,
        r#""usage":{"input_tokens":1},"usage":{"input_tokens":2},"#,
    ];
    for usage in usages {
        for model in ["", r#""model":"m","#, r#""model":"<synthetic>","#] {
            let line = format!(
                r#"{{"type":"assistant","message":{{{model}{usage}"content":[{}]}}}}"#,
                ODD_BLOCKS[0]
            );
            taken(&claude, &line);
        }
    }
}

#[test]
fn odd_lines_read_the_same_either_way() {
    let claude = preset("claude").unwrap().compile().unwrap();
    let deep = format!(
        r#"{{"type":"tool_use","id":"t","name":"X","input":{}{}}}"#,
        "[".repeat(119),
        "]".repeat(119)
    );
    let blocks = ODD_BLOCKS.into_iter().chain([deep.as_str()]);
    let models = [
        "",
        r#""model":"m","#,
        r#""model":"<synthetic>","#,
        r#""id":"i","model":null,"#,
        r#""id":7,"model":5,"#,
        r#""model":"m","id":null,"#,
    ];
    let ends = [
        "",
        r#","parent_tool_use_id":null"#,
        r#","parent_tool_use_id":"t""#,
        r#","parent_tool_use_id":false"#,
        r#","aborted":true"#,
        r#","aborted":false"#,
        r#","aborted":null"#,
        r#","error":"rate_limit""#,
        r#","error":null,"error":"x""#,
        r#","message":{"content":[]}"#,
    ];
    let compositions =
        blocks.flat_map(|block| models.map(|model| (block, model))).flat_map(|(block, model)| {
            ends.map(|end| format!(r#"{{"type":"assistant","message":{{{model}"content":[{block}]}}{end}}}"#))
        });
    assert!(compositions.filter(|line| taken(&claude, line)).count() > 50);
    for line in [r#"{"type":"assistant"}"#, r#"{"type":"assistant","message":{"content":"text"}}"#] {
        assert!(!taken(&claude, line));
    }

    let gemini = preset("gemini").unwrap().compile().unwrap();
    for (fields, expected) in [
        (r#""role":"assistant","content":"a\n","delta":true"#, true),
        (r#""delta":true,"content":"","role":"\u0061ssistant""#, true),
        (r#""role":"user","content":"a","delta":true"#, false),
        (r#""role":"assistant","content":"a","delta":false"#, false),
        (r#""role":"assistant","content":"a""#, false),
        (r#""role":"assistant","content":"a","delta":1"#, false),
        (r#""role":"assistant","content":null,"delta":true"#, false),
        (r#""role":"assistant","content":"\ud83d","delta":true"#, false),
        (r#""role":"assistant","content":"a","content":"b","delta":true"#, false),
    ] {
        let line = format!(r#"{{"type":"message",{fields}}}"#);
        assert_eq!(taken(&gemini, &line), expected, "{line}");
    }
}
