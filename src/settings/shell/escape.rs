//! The escapes of `$'…'`.

/// Why an escape has no value that a variable could hold.
const NUL: &str = "a variable cannot hold a NUL byte; leave it out";

/// Decodes the text between `$'` and `'`. The result is bytes, since `\xHH` names bytes and only a whole value has
/// to be UTF-8. On error: the offset of the escape in `text`, and what is wrong with it.
pub(super) fn decode(text: &[char]) -> Result<Vec<u8>, (usize, &'static str)> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = text.get(at) {
        if c == '\\' && at + 1 < text.len() {
            at += 1 + escape(&text[at + 1..], &mut bytes).map_err(|problem| (at, problem))?;
        } else {
            push(&mut bytes, c);
            at += 1;
        }
    }
    Ok(bytes)
}

/// Decodes one escape, `rest` being what follows the backslash (at least one character). Returns how many
/// characters of `rest` belong to it.
fn escape(rest: &[char], bytes: &mut Vec<u8>) -> Result<usize, &'static str> {
    let simple = match rest[0] {
        'a' => 0x07,
        'b' => 0x08,
        'e' | 'E' => 0x1b,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        c @ ('\\' | '\'' | '"' | '?') => c as u8,
        '0'..='7' => return byte(rest, 0, 8, 3, bytes),
        'x' => return byte(rest, 1, 16, 2, bytes),
        'u' => return unicode(rest, 4, bytes),
        'U' => return unicode(rest, 8, bytes),
        'c' => return control(rest, bytes),
        _ => {
            bytes.push(b'\\');
            return Ok(0);
        }
    };
    bytes.push(simple);
    Ok(1)
}

/// `\NNN` and `\xHH`: one byte, its digits standing in `rest` after `skip` characters.
fn byte(
    rest: &[char],
    skip: usize,
    radix: u32,
    most: usize,
    bytes: &mut Vec<u8>,
) -> Result<usize, &'static str> {
    if radix == 16 && rest.get(1) == Some(&'{') {
        return Err("`\\x{…}` is not supported; write \\xHH or \\uHHHH");
    }
    let (value, digits) = number(&rest[skip..], radix, most);
    if digits == 0 {
        bytes.push(b'\\');
        return Ok(0);
    }
    match value & 0xff {
        0 => Err(NUL),
        value => {
            bytes.push(u8::try_from(value).unwrap_or(b'?'));
            Ok(skip + digits)
        }
    }
}

/// `\uHHHH` and `\UHHHHHHHH`: one character.
fn unicode(rest: &[char], most: usize, bytes: &mut Vec<u8>) -> Result<usize, &'static str> {
    let (value, digits) = number(&rest[1..], 16, most);
    if digits == 0 {
        bytes.push(b'\\');
        return Ok(0);
    }
    match char::from_u32(value) {
        Some('\0') => Err(NUL),
        Some(c) => {
            push(bytes, c);
            Ok(1 + digits)
        }
        None => Err("this number is not a Unicode character; write one up to 10FFFF that is not a surrogate"),
    }
}

/// `\cX`: the control character of X.
fn control(rest: &[char], bytes: &mut Vec<u8>) -> Result<usize, &'static str> {
    match rest.get(1) {
        None => {
            bytes.extend(b"\\c");
            Ok(1)
        }
        Some('?') => {
            bytes.push(0x7f);
            Ok(2)
        }
        Some(c) if c.is_ascii() && !matches!(c, '@' | '`' | ' ') => {
            bytes.push(c.to_ascii_uppercase() as u8 & 0x1f);
            // Written `\c\\`, the control character of the backslash takes both.
            Ok(if rest[1..].starts_with(&['\\', '\\']) { 3 } else { 2 })
        }
        Some(_) => Err("`\\c` needs an ASCII letter or one of [ \\ ] ^ _ ? after it"),
    }
}

/// The number that at most `most` digits at the start of `text` make, and how many there are.
fn number(text: &[char], radix: u32, most: usize) -> (u32, usize) {
    let digits = text.iter().take(most).map_while(|c| c.to_digit(radix));
    digits.fold((0, 0), |(value, count), digit| (value * radix + digit, count + 1))
}

fn push(bytes: &mut Vec<u8>, c: char) {
    bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
}
