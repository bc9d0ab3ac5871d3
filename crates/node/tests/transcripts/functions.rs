//! FUNCTION DUMP and FUNCTION RESTORE.

use crate::check::check;

#[test]
fn libraries_are_dumped_and_restored() {
    check(
        r#"
> FUNCTION DUMP -> "\x0c\x00\x96\xedh\x80\xf5U<\x93"
> FUNCTION LOAD "\x23!lua name=one\nredis.register_function('f', function() return 1 end)" -> "one"
> FUNCTION DUMP
"\xf5@D#!lua name=one\nredis.register_function('f', function() return 1 end)\x0c\x00\x84\x04\xf9\xb3
  \x0b\xce\x83@"
> FUNCTION RESTORE "\xf5@D\x23!lua name=one\nredis.register_function('f', function() return 1 end)
  \x0c\x00\x84\x04\xf9\xb3\x0b\xce\x83@"
-ERR Library one already exists
> FUNCTION RESTORE "\xf5@D\x23!lua name=one\nredis.register_function('f', function() return 1 end)
  \xf5@D\x23!lua name=two\nredis.register_function('g', function() return 2 end)\x0c\x00\xe4tn(
  \x05\xe0fQ" append
-ERR Library one already exists
> FUNCTION LIST
[["library_name", "one", "engine", "LUA", "functions", [["name", "f", "description", nil, "flags", [
  ]]]]]
> FUNCTION RESTORE "\xf5@D\x23!lua name=one\nredis.register_function('f', function() return 1 end)
  \xf5@D\x23!lua name=two\nredis.register_function('g', function() return 2 end)\x0c\x00\xe4tn(
  \x05\xe0fQ" REPLACE
OK
> FCALL g 0 -> 2
> FUNCTION RESTORE "\xf5@F\x23!lua name=other\nredis.register_function('f', function() return 3 end)
  \x0c\x00\xe8P\n\xd0\xd6\x97=\xbe"
-ERR Function f already exists
> FUNCTION RESTORE "\xf5@F\x23!lua name=other\nredis.register_function('f', function() return 3 end)
  \x0c\x00\xe8P\n\xd0\xd6\x97=\xbe" REPLACE
-ERR Function f already exists
> FCALL f 0 -> 1
> FUNCTION RESTORE "\xf5@F\x23!lua name=other\nredis.register_function('f', function() return 3 end)
  \x0c\x00\xe8P\n\xd0\xd6\x97=\xbe" FLUSH
OK
> FCALL f 0 -> 3
> FCALL g 0 -> -ERR Function not found
> FUNCTION RESTORE "\x0c\x00\x96\xedh\x80\xf5U<\x93" -> OK
> FCALL f 0 -> 3
> FUNCTION RESTORE "\x0c\x00\x96\xedh\x80\xf5U<\x93" FLUSH -> OK
> FCALL f 0 -> -ERR Function not found
> FUNCTION RESTORE x -> -ERR DUMP payload version or checksum are wrong
> FUNCTION RESTORE "\xf5@D\x23!lua name=one\nredis.register_function('f', function() return 1 end)
  \x0c\x00\x84\x04\xf9\xb3\x0b\xce\x83@" OTHER
-ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.
> FUNCTION RESTORE "\xf5@D\x23!lua name=one\nredis.register_function('f', function() return 1 end)
  \x0c\x00\x84\x04\xf9\xb3\x0b\xce\x83@" FLUSH FLUSH
-ERR unknown subcommand or wrong number of arguments for 'RESTORE'. Try FUNCTION HELP.
> FUNCTION RESTORE "\x00\x04text\x0c\x00\xb7\x85\x12\xad0\x9f;x"
-ERR given type is not a function
> FUNCTION RESTORE -> -ERR wrong number of arguments for 'function|restore' command
> FUNCTION DUMP x -> -ERR wrong number of arguments for 'function|dump' command
> FUNCTION STATS
["running_script", nil, "engines", ["LUA", ["libraries_count", 0, "functions_count", 0]]]
"#,
    );
}
