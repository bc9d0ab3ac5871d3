//! Joins selectors that are spread over several arguments: `(~a`, `+get)` becomes `(~a +get)`.

use crate::rules::until_zero;

/// The words for a user, with each selector as one word.
///
/// # Errors
/// The index of the argument that begins an unclosed selector.
pub(crate) fn words(args: &[impl AsRef<[u8]>]) -> Result<Vec<Vec<u8>>, usize> {
    let mut words: Vec<Vec<u8>> = Vec::with_capacity(args.len());
    let mut open: Option<(usize, Vec<u8>)> = None;
    for (index, arg) in args.iter().enumerate() {
        let arg = arg.as_ref();
        let closes = arg.last() == Some(&b')');
        match &mut open {
            Some((_, selector)) => {
                selector.push(b' ');
                selector.extend_from_slice(until_zero(arg));
                if closes {
                    words.extend(open.take().map(|(_, selector)| selector));
                }
            }
            None if arg.first() == Some(&b'(') && !closes => open = Some((index, arg.to_vec())),
            None => words.push(arg.to_vec()),
        }
    }
    match open {
        None => Ok(words),
        Some((index, _)) => Err(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &str, expected: Result<&[&str], usize>) {
        let args: Vec<&str> = args.split('|').collect();
        let expected =
            expected.map(|words| words.iter().map(|word| word.as_bytes().to_vec()).collect());
        assert_eq!(words(&args), expected, "{args:?}");
    }

    #[test]
    fn selectors_over_several_arguments() {
        check("on|+get", Ok(&["on", "+get"]));
        check("(+get)|()|)", Ok(&["(+get)", "()", ")"]));
        check("(|+get|~a|)|on", Ok(&["( +get ~a )", "on"]));
        check("(+a|(+b|(+c|)|)|)", Ok(&["(+a (+b (+c )", ")", ")"]));
        check("(+a||+b)", Ok(&["(+a  +b)"]));
        check("on|(+a|(+b", Err(1));
        check("(", Err(0));
        check("", Ok(&[""]));
    }
}
