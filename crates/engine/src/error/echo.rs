//! Parts of requests in error texts.
//!
//! Arguments are bytes and need not be UTF-8. A text holds each byte of an argument as the
//! character with that number (Latin-1), so that enums can keep and print strings; `to_bytes`
//! converts the text back when it is sent. Redis formats such texts with C's `%s`, so an argument
//! ends at its first zero byte.

/// An argument converted for an error text.
pub fn echo(arg: &[u8]) -> String {
    arg.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect()
}

/// At most the first `bytes_max` bytes of an argument.
pub fn echo_start(arg: &[u8], bytes_max: usize) -> String {
    echo(&arg[..arg.len().min(bytes_max)])
}

/// The bytes of a text. Characters above 255 remain UTF-8.
pub(super) fn to_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoed_bytes_are_restored_up_to_a_zero() {
        let all: Vec<u8> = (1..=255).collect();
        assert_eq!(to_bytes(&echo(&all)), all);
        assert_eq!(to_bytes(&echo(b"a\xff\0b")), b"a\xff");
        assert_eq!(to_bytes(&echo_start(b"\xff\xfe\xfd", 2)), b"\xff\xfe");
        assert_eq!(echo_start(b"a\0bc", 3), "a");
        assert_eq!(to_bytes("1 \u{20ac}"), "1 \u{20ac}".as_bytes());
    }
}
