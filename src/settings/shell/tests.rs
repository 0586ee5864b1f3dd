use super::*;

fn env(name: &str) -> Option<String> {
    let value = match name {
        "HOME" => "/home/u",
        "SET" => "in env",
        "EMPTY" => "",
        _ => return None,
    };
    Some(value.to_owned())
}

/// `NAME=value` of every variable, joined by `|`.
fn read(text: &str) -> String {
    let assignments = parse(text, &env).unwrap_or_else(|error| panic!("{text}: {error}"));
    let lines: Vec<String> = assignments.into_iter().map(|a| format!("{}={}", a.name, a.value)).collect();
    lines.join("|")
}

fn refuse(text: &str) -> String {
    parse(text, &env).expect_err(text).to_string()
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(read(text), *expected, "{text}");
    }
}

#[test]
fn quotes() {
    check(&[
        ("A=", "A="),
        ("A='x  $y'", "A=x  $y"),
        (r#"A="a\"b\$c\d""#, r#"A=a"b$c\d"#),
        (r"A=$'a\tb\'\x41\u00e9\101'", "A=a\tb'Aé\u{41}"),
        (r"A=$'\xc3\xa9'", "A=é"),
        ("A='a'\"b\"c\\ d$'e'", "A=abc de"),
        ("A=a\\\nb", "A=ab"),
        ("A='jq -r \".x\"' # comment", "A=jq -r \".x\""),
        ("A=a#b #c", "A=a#b"),
        ("A='two\nlines'", "A=two\nlines"),
        ("A={a,b}*?[x]~!", "A={a,b}*?[x]~!"),
    ]);
}

#[test]
fn variables() {
    check(&[
        ("A=1; B=$A${A}2", "A=1|B=112"),
        ("A=$SET", "A=in env"),
        ("A=$UNSET", "A="),
        ("SET=own; A=$SET", "SET=own|A=own"),
        ("A=${UNSET:-x} B=${EMPTY:-x} C=${EMPTY-x} D=${SET:+y}", "A=x|B=x|C=|D=y"),
        ("A=${X:-${Y:-'deep er'}}", "A=deep er"),
        ("A=1 A+=2", "A=12"),
        ("SET+=!", "SET=in env!"),
        ("A=$ B=\"$\" C=$.", "A=$|B=$|C=$."),
        ("A=1\nA=2", "A=2"),
    ]);
}

#[test]
fn defaults_by_assignment() {
    check(&[
        (": \"${A:=x y}\" ${B=z}", "A=x y|B=z"),
        ("A=1\n: ${A:=2}", "A=1"),
        // What the environment decides is the file's value then.
        (": ${SET:=x}", "SET=in env"),
        (": ${EMPTY:=x}", "EMPTY=x"),
        (": \"${A:=jq -r '.a // {}'}\"", "A=jq -r '.a // {}'"),
        (r#": "${A:=select(.x==\"y\")}""#, r#"A=select(.x=="y")"#),
        ("A=${B:=1}2", "B=1|A=12"),
        (r#"A="${B:-"${SET}"" it's "'{}'}""#, "A=in env it's '{}'"),
    ]);
}

#[test]
fn tilde() {
    check(&[
        ("A=~ B=~/x C=a:~/x:~", "A=/home/u|B=/home/u/x|C=a:/home/u/x:/home/u"),
        ("A='~' B=\"~/x\" C=\\~ D=a~ E=x=~", "A=~|B=~/x|C=~|D=a~|E=x=~"),
        ("A=${X:-~/x}", "A=/home/u/x"),
        ("HOME=/other; A=~", "HOME=/other|A=/other"),
    ]);
    assert!(parse("A=~", &|_| None).unwrap_err().message.contains("HOME, which is not set"));
}

#[test]
fn exports() {
    let exported = |text: &str| {
        let assignments = parse(text, &env).unwrap();
        assignments.into_iter().filter(|a| a.exported).map(|a| a.name + "=" + &a.value).collect::<Vec<_>>()
    };
    assert_eq!(exported("export A=1 B\nB=2\nC=3"), ["A=1", "B=2"]);
    assert_eq!(exported("A=1\nexport A"), ["A=1"]);
    assert_eq!(exported("export NEVER_SET"), [""; 0]);
    // What was in the environment stays there with its new value.
    assert_eq!(exported("SET=new"), ["SET=new"]);
    // Words are expanded before the first assignment happens.
    assert_eq!(exported("export A=1 B=$A"), ["A=1", "B="]);
}

#[test]
fn lines_and_separators() {
    let text = "\u{feff}# head\r\n\r\nA=1 ; B=2\r\nC='x\r\ny'\nA=3;";
    let lines: Vec<_> = parse(text, &env).unwrap().into_iter().map(|a| (a.name, a.value, a.line)).collect();
    let expected = [("A", "3", 6), ("B", "2", 3), ("C", "x\ny", 4)];
    assert_eq!(lines, expected.map(|(name, value, line)| (name.to_owned(), value.to_owned(), line)));
    check(&[("", ""), ("\n \t\n", ""), (":", ""), ("# only", "")]);
}

#[test]
fn what_would_run_is_refused_with_its_place() {
    for (text, place, words) in [
        ("A=1\nB=$(date)", "line 2, column 3", "would run a command"),
        ("A=\"é $(date)\"", "line 1, column 6", "use ${NAME:-default}"),
        ("A=`date`", "line 1, column 3", "backtick"),
        ("A=\"${B:-`date`}\"", "line 1, column 9", "backtick"),
        ("A=$((1+1))", "line 1, column 3", "would run"),
        ("A=$[1]", "line 1, column 3", "arithmetic"),
        ("A=(1 2)", "line 1, column 3", "arrays"),
        ("A[0]=1", "line 1, column 2", "arrays"),
        ("  if true; then", "line 1, column 3", "`if` is program code"),
        ("source other", "line 1, column 1", "copy its assignments"),
        (". other", "line 1, column 1", "copy its assignments"),
        ("f() { :; }", "line 1, column 1", "defines a function"),
        ("echo hi", "line 1, column 1", "`echo` would run as a command"),
        ("A=1 echo hi", "line 1, column 5", "`echo` after an assignment"),
        ("A=x y", "line 1, column 5", "put a value with blanks in quotes"),
        ("A = 1", "line 1, column 1", "blanks around `=`; write A=value"),
        ("A=1 | cat", "line 1, column 5", "pipe"),
        ("A=1 > f", "line 1, column 5", "redirect"),
        ("A=1&", "line 1, column 4", "background"),
        (": <<EOF", "line 1, column 3", "redirect"),
        ("A=${B:-<(x)}", "line 1, column 8", "redirect"),
        ("(A=1)", "line 1, column 1", "subshell"),
        ("A=1;;", "line 1, column 5", "nothing before this `;`"),
        ("declare A=1", "line 1, column 1", "write NAME=value"),
        ("export -f x", "line 1, column 8", "`export` takes NAME"),
        ("export A={1,2}", "line 1, column 10", "quote the value"),
        ("1A=2", "line 1, column 1", "`1A` cannot be a variable's name"),
        ("my-name=2", "line 1, column 1", "`my-name` cannot be a variable's name"),
    ] {
        let message = refuse(text);
        assert!(message.starts_with(place) && message.contains(words), "{text}: {message}");
        assert!(!message.contains('\n'));
    }
}

#[test]
fn expansions_without_meaning_here_are_refused() {
    for (text, place, words) in [
        ("A=$1", "line 1, column 3", "`$1` has no meaning"),
        ("A=$$", "line 1, column 3", "`$$` has no meaning"),
        ("A=\"$@\"", "line 1, column 4", "`$@` has no meaning"),
        ("A=$_", "line 1, column 3", "`$_`"),
        ("A=${#B}", "line 1, column 4", "`${#…}`"),
        ("A=${!B}", "line 1, column 4", "`${!…}`"),
        ("A=${B%x}", "line 1, column 6", "only ${B:-x}"),
        ("A=${B:?x}", "line 1, column 7", "only ${B:-x}"),
        ("A=${B:1:2}", "line 1, column 7", "only ${B:-x}"),
        ("A=${B/x/y}", "line 1, column 6", "only ${B:-x}"),
        ("A=$RANDOM", "line 1, column 3", "only inside bash"),
        ("A=$HOSTNAME", "line 1, column 3", "only inside bash"),
        ("UID=3", "line 1, column 1", "bash sets `UID` itself"),
        ("A=~root/x", "line 1, column 3", "`~root` is not supported"),
        ("A=~+", "line 1, column 3", "`~+` is not supported"),
        ("A=\"${B:-\"$C\"d}\"", "line 1, column 12", "tangled"),
        ("A=\"${B:-'a\"b\"'}\"", "line 1, column 11", "tangled"),
        ("A=\"${B:-it's}\"", "line 1, column 11", "not closed"),
    ] {
        let message = refuse(text);
        assert!(message.starts_with(place) && message.contains(words), "{text}: {message}");
    }
}

#[test]
fn what_is_never_closed_points_to_its_start() {
    for (text, place, words) in [
        ("A='x\ny", "line 1, column 3", "this ' is never closed"),
        ("A=1\nB=\"x", "line 2, column 3", "this \" is never closed"),
        ("A=$'x\\'", "line 1, column 4", "this $' is never closed"),
        ("A=${B", "line 1, column 4", "this { is never closed"),
        ("A=${B:-x", "line 1, column 4", "this { is never closed"),
        ("A=\"${B:-x", "line 1, column 5", "this { is never closed"),
    ] {
        let message = refuse(text);
        assert!(message.starts_with(place) && message.contains(words), "{text}: {message}");
    }
}

#[test]
fn values_that_no_variable_holds_are_refused() {
    assert!(refuse("A=1\nB=\0").starts_with("line 2, column 3: a NUL byte"));
    assert!(refuse(r"A=$'a\0'").starts_with("line 1, column 6: a variable cannot hold a NUL byte"));
    assert!(refuse(r"A=$'\xff'").contains("not valid UTF-8"));
    assert!(refuse(r"A=$'\ud800'").contains("not a Unicode character"));
    assert!(refuse(r"A=$'\x{41}'").contains("not supported"));
    assert!(refuse(r"A=$'\cé'").contains("ASCII letter"));
}

#[test]
fn size_and_depth_are_bounded() {
    let doubling = "A=xxxxxxxx\n".to_owned() + &"A=$A$A\n".repeat(60);
    assert!(refuse(&doubling).contains("16 MiB"));
    let appending = "A=xxxxxxxx\n".to_owned() + &"A+=$A\n".repeat(60);
    assert!(refuse(&appending).contains("16 MiB"));
    for open in ["${A:-", "\"${A:-", "${A:-\""] {
        assert!(refuse(&("A=".to_owned() + &open.repeat(100_000))).contains("inside each other"), "{open}");
    }
}
