//! Whether two replies to the same request are equivalent.

use test_support::Value;

/// How two replies to a request are compared when neither is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// They are equal, with maps and sets in any order.
    Exact,
    /// They have the same elements, in groups of this size, in any order.
    Unordered(usize),
    /// They have the same types and numbers of elements; strings and numbers may differ.
    Shape,
    /// Positive integers differ by no more than this.
    Near(u64),
    /// Times of consumers and pending entries differ by little; the rest is equal.
    Ages,
    /// The request is repeated with the cursor of the reply until it is 0; all replies together
    /// have the same elements, in groups of this size.
    Scan(usize),
    /// They have the same type and number of elements.
    Count,
    /// They have the same elements at every depth, in any order.
    Loose,
}

/// The largest difference of times and ages of stream consumers, in milliseconds.
const AGE_MS_MAX: u64 = 10_000;

/// Names before a time or an age in the replies of XINFO.
const AGES: &[&[u8]] = &[b"idle", b"inactive", b"seen-time", b"active-time"];

/// Names before numbers that depend on how a server is built.
const INTERNALS: &[&[u8]] = &[b"radix-tree-keys", b"radix-tree-nodes"];

/// Whether two replies are equivalent in this sense. An error equals only itself.
pub fn same(how: Compare, left: &Value, right: &Value) -> bool {
    if left == right {
        return true;
    }
    if left.is_error() || right.is_error() {
        return false;
    }
    match how {
        Compare::Exact => ordered(left.clone()) == ordered(right.clone()),
        Compare::Unordered(width) | Compare::Scan(width) => {
            let (left, right) = (ordered(left.clone()), ordered(right.clone()));
            match (&left, &right) {
                (Value::Many(a, left), Value::Many(b, right)) => {
                    a == b && groups(left, width) == groups(right, width)
                }
                _ => left == right,
            }
        }
        Compare::Shape => same_shape(left, right),
        Compare::Count => same_count(left, right),
        Compare::Loose => loose(left.clone()) == loose(right.clone()),
        Compare::Near(most) => near(left, right, most),
        Compare::Ages => same_but_ages(left, right),
    }
}

/// The elements in groups of this size, sorted.
pub fn groups(elements: &[Value], width: usize) -> Vec<&[Value]> {
    let mut groups: Vec<&[Value]> = elements.chunks(width.max(1)).collect();
    groups.sort();
    groups
}

/// Sorts maps and sets at any depth.
fn ordered(value: Value) -> Value {
    let Value::Many(marker, elements) = value else { return value };
    let elements: Vec<Value> = elements.into_iter().map(ordered).collect();
    let width = match marker {
        b'%' => 2,
        b'~' => 1,
        _ => return Value::Many(marker, elements),
    };
    Value::Many(marker, groups(&elements, width).concat())
}

/// Sorts the elements at any depth.
fn loose(value: Value) -> Value {
    let Value::Many(marker, elements) = value else { return value };
    let mut elements: Vec<Value> = elements.into_iter().map(loose).collect();
    elements.sort();
    Value::Many(marker, elements)
}

fn same_count(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Many(a, left), Value::Many(b, right)) => a == b && left.len() == right.len(),
        _ => left == right,
    }
}

fn same_shape(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Many(a, left), Value::Many(b, right)) => {
            let mut pairs = left.iter().zip(right);
            a == b
                && left.len() == right.len()
                && pairs.all(|(left, right)| same_shape(left, right))
        }
        (Value::Text(a, _), Value::Text(b, _)) => a == b,
        _ => left == right,
    }
}

fn near(left: &Value, right: &Value, most: u64) -> bool {
    match (left, right) {
        (Value::Many(a, left), Value::Many(b, right)) => {
            let mut pairs = left.iter().zip(right);
            a == b
                && left.len() == right.len()
                && pairs.all(|(left, right)| near(left, right, most))
        }
        (Value::Text(b':', _), Value::Text(b':', _)) => match (left.integer(), right.integer()) {
            (Some(left), Some(right)) => {
                left == right || left >= 0 && right >= 0 && left.abs_diff(right) <= most
            }
            _ => left == right,
        },
        _ => left == right,
    }
}

/// Equal except for ages and internals, which are recognised by the name before them or, in lists
/// of pending entries, by their position after an id and perhaps a consumer.
fn same_but_ages(left: &Value, right: &Value) -> bool {
    let (Value::Many(a, lefts), Value::Many(b, rights)) = (left, right) else {
        return left == right;
    };
    if a != b || lefts.len() != rights.len() {
        return false;
    }
    let pending_age = pending_age_at(lefts);
    lefts.iter().zip(rights).enumerate().all(|(at, (left, right))| {
        let name = at.checked_sub(1).and_then(|at| lefts[at].bytes()).unwrap_or_default();
        if AGES.contains(&name) || pending_age == Some(at) {
            return near(left, right, AGE_MS_MAX);
        }
        if INTERNALS.contains(&name) {
            return same_shape(left, right);
        }
        same_but_ages(left, right)
    })
}

/// The position of the time in `[id, consumer, time, deliveries]` and `[id, time, deliveries]`.
fn pending_age_at(elements: &[Value]) -> Option<usize> {
    let is_integer = |value: &Value| matches!(value, Value::Text(b':', _));
    let is_id = elements.first()?.bytes().is_some_and(|text| text.contains(&b'-'));
    match elements {
        [_, _, time, count] if is_id && is_integer(time) && is_integer(count) => Some(2),
        [_, time, count] if is_id && is_integer(time) && is_integer(count) => Some(1),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn reply(text: &str) -> Value {
        let bytes: String = text.split(' ').map(|line| format!("{line}\r\n")).collect();
        Value::read(&mut bytes.as_bytes()).unwrap()
    }

    fn check(how: Compare, left: &str, right: &str) -> bool {
        same(how, &reply(left), &reply(right))
    }

    #[test]
    fn maps_and_sets_have_no_order_but_arrays_have() {
        assert!(check(Compare::Exact, "%2 +a :1 +b :2", "%2 +b :2 +a :1"));
        assert!(!check(Compare::Exact, "%2 +a :1 +b :2", "%2 +b :1 +a :2"));
        assert!(check(Compare::Exact, "~2 +a +b", "~2 +b +a"));
        assert!(!check(Compare::Exact, "*2 +a +b", "*2 +b +a"));
        assert!(!check(Compare::Exact, "*1 +a", "~1 +a"));
        assert!(check(Compare::Unordered(1), "*2 +a +b", "*2 +b +a"));
        assert!(check(Compare::Unordered(2), "*4 +a :1 +b :2", "*4 +b :2 +a :1"));
        assert!(!check(Compare::Unordered(2), "*4 +a :1 +b :2", "*4 +b :1 +a :2"));
    }

    #[test]
    fn shapes_have_types_and_counts() {
        assert!(check(Compare::Shape, "*2 +a +b", "*2 +c +d"));
        assert!(!check(Compare::Shape, "*2 +a +b", "*1 +a"));
        assert!(!check(Compare::Shape, "+a", "$-1"));
        assert!(!check(Compare::Shape, "+a", "-ERR"));
        assert!(!check(Compare::Shape, "-ERR_a", "-ERR_b"));
    }

    #[test]
    fn counts_are_those_of_elements_and_loose_has_no_order() {
        assert!(check(Compare::Count, "*2 +a *1 +b", "*2 +c *0"));
        assert!(!check(Compare::Count, "*2 +a *1 +b", "*1 +a"));
        assert!(!check(Compare::Count, "+a", "+b"));
        assert!(check(Compare::Loose, "*2 *2 +a +b +c", "*2 +c *2 +b +a"));
        assert!(!check(Compare::Loose, "*2 *2 +a +b +c", "*2 +c *2 +b +b"));
    }

    #[test]
    fn times_are_near_but_minus_one_is_not() {
        assert!(check(Compare::Near(5), ":100", ":105"));
        assert!(!check(Compare::Near(5), ":100", ":106"));
        assert!(!check(Compare::Near(5), ":-1", ":-2"));
        assert!(!check(Compare::Near(5), ":-1", ":0"));
        assert!(check(Compare::Near(5), "*2 :1 :-1", "*2 :2 :-1"));
    }

    #[test]
    fn only_ages_may_differ_in_what_is_pending() {
        assert!(check(Compare::Ages, "*1 *4 +1-0 +c :5 :1", "*1 *4 +1-0 +c :9 :1"));
        assert!(!check(Compare::Ages, "*1 *4 +1-0 +c :5 :1", "*1 *4 +1-0 +c :5 :2"));
        assert!(check(Compare::Ages, "*2 +idle :5", "*2 +idle :7"));
        assert!(!check(Compare::Ages, "*2 +pending :5", "*2 +pending :7"));
        assert!(check(Compare::Ages, "%1 +radix-tree-nodes :5", "%1 +radix-tree-nodes :70000"));
    }
}
