use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;
use crate::engine::validation::Evidence;
use crate::record::report::LoopReport;
use crate::tell::group::Group;
use crate::view::report::tests::{attempt, iteration, loop_named, report_of};

/// Bytes in base64, as a policy names a hash.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |bytes: &[u8]| {
        let number = (0..3).fold(0_u32, |number, at| number << 8 | u32::from(*bytes.get(at).unwrap_or(&0)));
        let digit = |at: u32| char::from(DIGITS[(number >> (18 - 6 * at) & 63) as usize]);
        (0..4).map(|at| if at as usize <= bytes.len() { digit(at) } else { '=' }).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

#[test]
fn the_style_is_the_one_that_the_policy_allows() {
    let mut sum = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    sum.stdin.take().unwrap().write_all(STYLE.as_bytes()).unwrap();
    let told = String::from_utf8(sum.wait_with_output().unwrap().stdout).unwrap();
    let bytes: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&told[2 * at..2 * at + 2], 16).unwrap()).collect();
    assert_eq!(STYLE_HASH, base64(&bytes), "style.css has changed: STYLE_HASH is to be what is on the right");
}

#[test]
fn a_run_without_a_loop_is_a_page() {
    let page = page(&report_of(Vec::new()), "p", &[]);
    assert!(page.contains("No loop of it is left."), "{page}");
    assert!(!page.contains("<svg role"), "{page}");
}

#[test]
fn the_newest_iterations_are_told_and_it_is_said_what_is_left_out() {
    let iterations = (1..=10_000).map(|number: u32| {
        let mut attempt = attempt(number.into(), 1.0, "success");
        attempt.said = Some("x".repeat(2_000));
        iteration(number.into(), vec![attempt])
    });
    let mut one = loop_named("a b");
    one.iteration_list = iterations.collect();
    one.iterations = 10_000;
    let page = page(&report_of(vec![one]), "my project", &[]);
    assert!(page.contains("<title>my project: ralph "), "{page}");
    assert!(page.contains("Iterations 9801 to 9820 <span class=\"badge good\">"), "many are grouped");
    assert!(page.len() < 4 << 20, "{}", page.len());
    assert!(page.contains("<h4>Iteration 10000</h4>"));
    assert!(!page.contains("<h4>Iteration 9800</h4>"));
    assert!(
        page.contains(
            "Left out here: iterations 1 to 9800. All are in <code>ralph logs &#39;a b&#39; --agent --run "
        ),
        "{page}"
    );
}

#[test]
fn green_is_what_is_proven_and_what_needs_the_user_comes_first() {
    let ended = |name, proof, group| LoopReport {
        proof: Some(proof),
        group: Some(group),
        next: Some(format!("ralph diff {name}")),
        ..loop_named(name)
    };
    let page = page(
        &report_of(vec![
            ended("good", Evidence::proven(Some("npm test")), Group::ToMerge),
            ended("bare", Evidence::unchecked(), Group::NeedsYou),
        ]),
        "p",
        &[],
    );
    let (before, overview) = page.split_once("<h2 id=\"overview\">").unwrap();
    let (_, needs) = before.split_once("<h2 id=\"needs\">Needs you</h2>").unwrap();
    assert!(
        needs.contains("unchecked: the agent&#39;s word") && needs.contains("ralph diff bare"),
        "{needs}"
    );
    assert!(!needs.contains("npm test"), "{needs}");
    let (overview, _) = overview.split_once("</table>").unwrap();
    let rows: Vec<&str> = overview.split("<tr role=\"row\"").skip(2).collect();
    assert!(rows[0].contains("class=\"badge good\"") && rows[0].contains("proven: npm test"), "{rows:?}");
    assert!(rows[1].contains("class=\"badge unproven\"") && !rows[1].contains("badge good"), "{rows:?}");
}

#[test]
fn many_loops_share_the_room() {
    let loops = (0..60).map(|number| {
        let mut one = loop_named(&format!("{number}"));
        let mut attempt = attempt(0, 1.0, "success");
        attempt.said = Some("<".repeat(2_000));
        one.iteration_list = (1..=200).map(|number| iteration(number, vec![attempt.clone()])).collect();
        one
    });
    let page = page(&report_of(loops.collect()), "p", &[]);
    assert!(page.len() < 6 << 20, "{}", page.len());
    assert_eq!(page.matches("<h4>Iteration 200</h4>").count(), 60, "each one's last is there");
    assert!(page.contains("20 loops more are not painted.") || page.contains("20 loops"), "it is said");
}

#[test]
fn names_without_an_end_do_not_fill_the_page() {
    let mut one = loop_named(&"n".repeat(5_000));
    one.reason = Some("r".repeat(1 << 20));
    one.tools = (0..500).map(|number| (format!("{number}{}", "t".repeat(5_000)), 1)).collect();
    assert!(page(&report_of(vec![one]), "p", &[]).len() < 200 << 10);
}
