//! GEOADD, GEODIST, GEOHASH, GEOPOS, GEORADIUS and its variants, GEOSEARCH, GEOSEARCHSTORE.

use crate::check::check;

#[test]
fn geoadd() {
    check(
        r#"
> GEOADD k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania -> 2
! zadd:k => ZADD k 3479099956230698 Palermo 3479447370796909 Catania
> GEOADD k 13.361389 38.115556 Palermo -> 0
> GEOADD k CH 13.5 38.115556 Palermo 2 2 new -> 2
> GEOADD k NX CH 13.6 38 Palermo 1 1 newer -> 1
> GEOADD k XX 13.6 38 Palermo 1 1 newest -> 0
> GEOADD k xx ch 13.7 38 Palermo -> 1
! zadd:k => ZADD k xx ch 3479099511227591 Palermo
> ZRANGE k 0 -1 WITHSCORES
["newer", "3377822707026402", "new", "3378191666521995", "Palermo", "3479099511227591", "Catania",
   "3479447370796909"]
> TYPE k -> zset
> OBJECT ENCODING k -> "listpack"
> GEOADD k -180 -85.05112878 corner 180 85.05112878 other -> 2
> ZSCORE k corner -> "0"
> ZSCORE k other -> "13510798882111488"
> GEOPOS k corner other -> [["-179.99999731779099", "-85.05112751263943"], ["180", "85.05112878"]]
> GEOADD nokey XX 1 1 a -> 0
> EXISTS nokey -> 0
> GEOADD k 181 0 a -> -ERR invalid longitude,latitude pair 181.000000,0.000000
> GEOADD k 0 85.1 a -> -ERR invalid longitude,latitude pair 0.000000,85.100000
> GEOADD k inf -inf a -> -ERR invalid longitude,latitude pair inf,-inf
> GEOADD k nan 1 a -> -ERR value is not a valid float
> GEOADD k x 1 a -> -ERR value is not a valid float
> GEOADD k 1 x a -> -ERR value is not a valid float
> GEOADD k 1 1 a 200 100 b -> -ERR invalid longitude,latitude pair 200.000000,100.000000
> GEOADD k NX XX 1 1 a -> -ERR syntax error
> GEOADD k 1 1 a 2 -> -ERR syntax error
> GEOADD k CH CH CH -> -ERR syntax error
> GEOADD k INCR 1 1 a -> -ERR syntax error
> GEOADD k 1 1 -> -ERR wrong number of arguments for 'geoadd' command
> SET s x -> OK
> GEOADD s 1 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn geopos_geohash_geodist() {
    check(
        r#"
> GEOADD k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania -0.0001 0.0001 zero -> 3
> GEOPOS k Palermo nobody Catania zero
[["13.361389338970184", "38.1155563954963"], nil-array, ["15.087267458438873", "37.50266842333162"
  ], ["-9.924173355102539e-5", "1.0012148579363611e-4"]]
> GEOPOS k -> []
> GEOPOS nokey a b -> [nil-array, nil-array]
> GEOHASH k Palermo nobody Catania zero -> ["sqc8b49rny0", nil, "sqdtr74hyu0", "ebpbpbpbtd0"]
> GEOHASH k -> []
> GEOHASH nokey a -> [nil]
> GEODIST k Palermo Catania -> "166274.1516"
> GEODIST k Palermo Catania km -> "166.2742"
> GEODIST k Palermo Catania MI -> "103.3182"
> GEODIST k Palermo Catania ft -> "545518.8700"
> GEODIST k Palermo Palermo -> "0.0000"
> GEODIST k Palermo zero -> "4454725.6765"
> GEODIST k Palermo nobody -> nil
> GEODIST nokey a b -> nil
> GEODIST k Palermo Catania yd -> -ERR unsupported unit provided. please use M, KM, FT, MI
> GEODIST nokey Palermo Catania yd -> -ERR unsupported unit provided. please use M, KM, FT, MI
> GEODIST k Palermo Catania km x -> -ERR syntax error
> GEODIST k Palermo -> -ERR wrong number of arguments for 'geodist' command
> ZADD k -1 below 1e300 above 4503599627370496 beyond -> 3
> GEOPOS k below above beyond
[["180", "85.05112878"], ["-179.99999731779099", "-85.05112751263943"], ["-179.99999731779099", "8
  5.05112878"]]
> GEOHASH k below -> ["bp05b5048p0"]
> SET s x -> OK
> GEODIST s a b -> -WRONGTYPE Operation against a key holding the wrong kind of value
> GEOPOS s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> GEOHASH s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> GEOPOS -> -ERR wrong number of arguments for 'geopos' command
"#,
    );
}

#[test]
fn places_in_resp3() {
    check(
        r#"
> GEOADD k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania -> 2
> HELLO 3 -> ~~ *
> GEOPOS k Palermo nobody -> [[,13.361389338970184, ,38.1155563954963], nil]
> GEODIST k Palermo Catania -> "166274.1516"
> GEODIST k Palermo nobody -> nil
> GEOHASH k nobody -> [nil]
"#,
    );
}

#[test]
fn georadius() {
    check(
        r#"
> GEOADD k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania -> 2
> GEOADD k 13.583333 37.316667 Agrigento 2.349014 48.864716 Paris -> 2
> GEORADIUS k 15 37 200 km -> ["Agrigento", "Palermo", "Catania"]
> GEORADIUS k 15 37 200 km ASC -> ["Catania", "Agrigento", "Palermo"]
> GEORADIUS k 15 37 200 km DESC WITHDIST
[["Palermo", "190.4424"], ["Agrigento", "130.4235"], ["Catania", "56.4413"]]
> GEORADIUS k 15 37 200 km WITHCOORD WITHHASH WITHDIST ASC
[["Catania", "56.4413", 3479447370796909, ["15.087267458438873", "37.50266842333162"]], ["Agrigent
  o", "130.4235", 3479030013248308, ["13.583331406116486", "37.316668049938166"]], ["Palermo", "19
  0.4424", 3479099956230698, ["13.361389338970184", "38.1155563954963"]]]
> GEORADIUS k 15 37 200 km COUNT 1 -> ["Catania"]
> GEORADIUS k 15 37 200 km COUNT 2 DESC -> ["Palermo", "Agrigento"]
> GEORADIUS k 15 37 200 km COUNT 10 ANY -> ["Agrigento", "Palermo", "Catania"]
> GEORADIUS k 15 37 200 km COUNT 2 ANY DESC -> ["Palermo", "Agrigento"]
> GEORADIUS k 15 37 200 km COUNT 1 ANY -> ["Agrigento"]
> GEORADIUS k 15 37 5000 km WITHDIST
[["Agrigento", "130.4235"], ["Palermo", "190.4424"], ["Catania", "56.4413"], ["Paris", "1669.5005"
  ]]
> GEORADIUS k 15 37 20000 km ASC -> ["Catania", "Agrigento", "Palermo", "Paris"]
> GEORADIUS k 15 37 0 m -> []
> GEORADIUS k 15 37 1e308 km ASC -> ["Catania", "Agrigento", "Palermo", "Paris"]
> GEORADIUS k 15 37 inf m ASC -> ["Catania", "Agrigento", "Palermo", "Paris"]
"#,
    );
}

#[test]
fn georadius_stores() {
    check(
        r#"
> GEOADD k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 13.583333 37.316667 Agrigento
3
> GEORADIUS k 15 37 200 km STORE d -> 3
! georadiusstore:d => GEORADIUS k 15 37 200 km STORE d
> ZRANGE d 0 -1 WITHSCORES
["Agrigento", "3479030013248308", "Palermo", "3479099956230698", "Catania", "3479447370796909"]
> GEORADIUS k 15 37 200 km STOREDIST d -> 3
> ZRANGE d 0 -1 WITHSCORES
["Catania", "56.4412578701582", "Agrigento", "130.42348706714702", "Palermo", "190.44242984775784"
  ]
> GEORADIUS k 15 37 200 km COUNT 1 STORE d -> 1
> ZRANGE d 0 -1 -> ["Catania"]
> GEORADIUS k 15 37 1 m STORE d -> 0
! del:d => GEORADIUS k 15 37 1 m STORE d
> EXISTS d -> 0
> GEORADIUS k 15 37 1 m STORE d -> 0
> GEORADIUS k 15 37 200 km STORE a STOREDIST b -> 3
> EXISTS a b -> 1
> GEORADIUS k 15 37 200 km STORE a STORE storedist -> 3
! georadiusstore:storedist => GEORADIUS k 15 37 200 km STORE a STORE storedist
> COMMAND GETKEYS GEORADIUS k 15 37 200 km STORE a STOREDIST b -> ["k", "a", "b"]
> COMMAND GETKEYS GEORADIUS k 15 37 200 km STOREDIST b STORE a -> ["k", "a", "b"]
> COMMAND GETKEYSANDFLAGS GEORADIUSBYMEMBER k m 200 km STOREDIST b STORE a
[["k", [RO, access]], ["a", [OW, update]], ["b", [OW, update]]]
# The key that is written. Redis names the first key.
> COMMAND GETKEYS GEORADIUS k 15 37 200 km STORE a STORE b STORE c -> ["k", "c"]
> GEORADIUS k 15 37 200 km STORE k -> 3
> ZRANGE k 0 -1 -> ["Agrigento", "Palermo", "Catania"]
> GEORADIUS nokey 15 37 200 km STORE b -> 0
> EXISTS b -> 0
> GEORADIUS nokey 15 37 200 km -> []
> GEORADIUS_RO k 15 37 200 km ASC WITHDIST
[["Catania", "56.4413"], ["Agrigento", "130.4235"], ["Palermo", "190.4424"]]
> GEORADIUS_RO k 15 37 200 km STORE d -> -ERR syntax error
"#,
    );
}

#[test]
fn georadiusbymember() {
    check(
        r#"
> GEOADD k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 13.583333 37.316667 Agrigento
3
> GEORADIUSBYMEMBER k Agrigento 100 km -> ["Agrigento", "Palermo"]
> GEORADIUSBYMEMBER k Agrigento 100 km WITHDIST ASC
[["Agrigento", "0.0000"], ["Palermo", "90.9778"]]
> GEORADIUSBYMEMBER k Agrigento 100 km STOREDIST d -> 2
> ZCARD d -> 2
> GEORADIUSBYMEMBER_RO k Agrigento 100 km DESC -> ["Palermo", "Agrigento"]
> GEORADIUSBYMEMBER_RO k Agrigento 100 km STORE d -> -ERR syntax error
> GEORADIUSBYMEMBER k nobody 100 km -> -ERR could not decode requested zset member
> GEORADIUSBYMEMBER nokey nobody 100 km -> []
> GEORADIUSBYMEMBER nokey nobody x y -> []
> GEORADIUSBYMEMBER nokey nobody 100 km STORE d -> 0
> GEORADIUSBYMEMBER nokey nobody 100 km NO -> -ERR syntax error
"#,
    );
}

#[test]
fn georadius_errors() {
    check(
        r#"
> GEOADD k 13.361389 38.115556 Palermo -> 1
> GEORADIUS k 15 37 x km -> -ERR need numeric radius
> GEORADIUS k 15 37 -1 km -> -ERR radius cannot be negative
> GEORADIUS k 15 37 1 yd -> -ERR unsupported unit provided. please use M, KM, FT, MI
> GEORADIUS k x 37 1 km -> -ERR value is not a valid float
> GEORADIUS k 200 37 1 km -> -ERR invalid longitude,latitude pair 200.000000,37.000000
> GEORADIUS k 15 37 1 km NO -> -ERR syntax error
> GEORADIUS k 15 37 1 km COUNT -> -ERR syntax error
> GEORADIUS k 15 37 1 km COUNT 0 -> -ERR COUNT must be > 0
> GEORADIUS k 15 37 1 km COUNT -1 -> -ERR COUNT must be > 0
> GEORADIUS k 15 37 1 km COUNT x -> -ERR value is not an integer or out of range
> GEORADIUS k 15 37 1 km ANY -> -ERR the ANY argument requires COUNT argument
> GEORADIUS k 15 37 1 km STORE -> -ERR syntax error
> GEORADIUS k 15 37 1 km STORE store -> 0
> GEORADIUS k 15 37 1 km STORE d WITHDIST
-ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options
> GEORADIUS k 15 37 1 km WITHCOORD STOREDIST d
-ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options
> GEORADIUS nokey 15 37 1 km STORE d WITHHASH
-ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options
> GEORADIUS k 15 37 1 km BYRADIUS 1 m -> -ERR syntax error
> GEORADIUS k 15 37 1 -> -ERR wrong number of arguments for 'georadius' command
> SET s x -> OK
> GEORADIUS s 15 37 1 km -> -WRONGTYPE Operation against a key holding the wrong kind of value
> GEORADIUS s x 37 1 km -> -WRONGTYPE Operation against a key holding the wrong kind of value
> GEORADIUSBYMEMBER s a 1 km -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn geosearch() {
    check(
        r#"
> GEOADD k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania -> 2
> GEOADD k 12.758489 38.788135 edge1 17.241510 38.788135 edge2 2.349014 48.864716 Paris -> 3
> GEOSEARCH k FROMLONLAT 15 37 BYBOX 400 400 km ASC -> ["Catania", "Palermo", "edge2", "edge1"]
> GEOSEARCH k FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHCOORD WITHDIST
[["Catania", "56.4413", ["15.087267458438873", "37.50266842333162"]], ["Palermo", "190.4424", ["13
  .361389338970184", "38.1155563954963"]], ["edge2", "279.7403", ["17.241510450839996", "38.788134
  51624225"]], ["edge1", "279.7405", ["12.75848776102066", "38.78813451624225"]]]
> GEOSEARCH k FROMLONLAT 15 37 BYRADIUS 200 km -> ["Palermo", "Catania"]
> GEOSEARCH k fromlonlat 15 37 byradius 200 KM desc withhash
[["Palermo", 3479099956230698], ["Catania", 3479447370796909]]
> GEOSEARCH k FROMMEMBER Palermo BYRADIUS 200 km ASC WITHDIST
[["Palermo", "0.0000"], ["edge1", "91.4007"], ["Catania", "166.2742"]]
> GEOSEARCH k FROMMEMBER Palermo BYBOX 10 10 km -> ["Palermo"]
> GEOSEARCH k BYBOX 400 400 km FROMLONLAT 15 37 COUNT 2 -> ["Catania", "Palermo"]
> GEOSEARCH k BYBOX 400 400 km FROMLONLAT 15 37 COUNT 2 ANY -> ["Palermo", "edge1"]
> GEOSEARCH k FROMLONLAT 15 37 FROMLONLAT 2 48 BYRADIUS 1 km BYRADIUS 200 km -> ["Paris"]
> GEOSEARCH k FROMLONLAT 15 37 BYBOX 0 0 km -> []
"#,
    );
}

#[test]
fn geosearch_errors() {
    check(
        r#"
> GEOADD k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania -> 2
> GEOSEARCH nokey FROMMEMBER x BYRADIUS 1 km -> []
> GEOSEARCH k FROMMEMBER nobody BYRADIUS 1 km -> -ERR could not decode requested zset member
> GEOSEARCH k FROMMEMBER Palermo FROMLONLAT 15 37 BYRADIUS 1 km -> -ERR syntax error
> GEOSEARCH k FROMLONLAT 15 37 FROMMEMBER Palermo BYRADIUS 1 km -> -ERR syntax error
> GEOSEARCH k FROMLONLAT 15 37 BYRADIUS 1 km BYBOX 1 1 km -> -ERR syntax error
> GEOSEARCH k FROMLONLAT 15 37 BYBOX 1 1 km BYRADIUS 1 km -> -ERR syntax error
> GEOSEARCH k BYBOX 1 1 km ASC DESC
-ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCH
> geosearch k FROMLONLAT 15 37 ASC DESC WITHDIST
-ERR exactly one of BYRADIUS and BYBOX can be specified for geosearch
> GEOSEARCH k FROMLONLAT 15 37 BYBOX 400 x km -> -ERR need numeric height
> GEOSEARCH k FROMLONLAT 15 37 BYBOX x 400 km -> -ERR need numeric width
> GEOSEARCH k FROMLONLAT 15 37 BYBOX -1 400 km -> -ERR height or width cannot be negative
> GEOSEARCH k FROMLONLAT 15 37 BYBOX 400 400 yd
-ERR unsupported unit provided. please use M, KM, FT, MI
> GEOSEARCH k FROMLONLAT 15 37 BYBOX 400 400 -> -ERR syntax error
> GEOSEARCH k FROMLONLAT 15 37 BYRADIUS 400 -> -ERR syntax error
> GEOSEARCH k FROMLONLAT 15 BYRADIUS 400 km ASC -> -ERR value is not a valid float
> GEOSEARCH k FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST -> -ERR syntax error
> GEOSEARCH k FROMLONLAT 15 37 BYRADIUS 200 km STORE d -> -ERR syntax error
> GEOSEARCH k FROMLONLAT 15 37 BYRADIUS 200 km ANY -> -ERR the ANY argument requires COUNT argument
> GEOSEARCH k FROMLONLAT 15 37 BYRADIUS 200 km COUNT 0 -> -ERR COUNT must be > 0
> GEOSEARCH k FROMLONLAT 15 37 BYRADIUS -> -ERR wrong number of arguments for 'geosearch' command
> HELLO 3 -> ~~ *
> GEOSEARCH k FROMLONLAT 15 37 BYRADIUS 200 km ASC WITHCOORD WITHDIST WITHHASH COUNT 1
[["Catania", "56.4413", 3479447370796909, [,15.087267458438873, ,37.50266842333162]]]
"#,
    );
}

#[test]
fn geosearchstore() {
    check(
        r#"
> GEOADD k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 2.349014 48.864716 Paris -> 3
> GEOSEARCHSTORE d k FROMLONLAT 15 37 BYBOX 400 400 km -> 2
! geosearchstore:d => GEOSEARCHSTORE d k FROMLONLAT 15 37 BYBOX 400 400 km
> ZRANGE d 0 -1 WITHSCORES -> ["Palermo", "3479099956230698", "Catania", "3479447370796909"]
> GEOSEARCHSTORE d k FROMMEMBER Catania BYRADIUS 1000 km STOREDIST DESC COUNT 1 -> 1
> ZRANGE d 0 -1 WITHSCORES -> ["Palermo", "166.27415156960032"]
> GEOSEARCHSTORE d k FROMLONLAT 0 0 BYRADIUS 1 km -> 0
> EXISTS d -> 0
> GEOSEARCHSTORE k k FROMLONLAT 15 37 BYRADIUS 200 km -> 2
> ZRANGE k 0 -1 -> ["Palermo", "Catania"]
> SET d x -> OK
> GEOSEARCHSTORE d nokey FROMMEMBER a BYRADIUS 1 km -> 0
> EXISTS d -> 0
> GEOSEARCHSTORE d nokey FROMMEMBER a BYRADIUS 1 km -> 0
> SET d x -> OK
> GEOSEARCHSTORE d k FROMLONLAT 15 37 BYRADIUS 200 km -> 2
> TYPE d -> zset
> GEOSEARCHSTORE d k FROMLONLAT 15 37 BYRADIUS 200 km WITHDIST
-ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options
> GEOSEARCHSTORE d k FROMLONLAT 15 37 BYRADIUS 200 km STORE x -> -ERR syntax error
> GEOSEARCHSTORE d k BYRADIUS 200 km ASC COUNT 1
-ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCHSTORE
> SET s x -> OK
> GEOSEARCHSTORE d s FROMLONLAT 15 37 BYRADIUS 200 km
-WRONGTYPE Operation against a key holding the wrong kind of value
> TYPE d -> zset
"#,
    );
}

#[test]
fn polygons() {
    check(
        r#"
> GEOADD k 13.361389 38.115556 Palermo 15.087269 37.502669 Catania -> 2
> GEOADD k 12.758489 38.788135 edge1 17.241510 38.788135 edge2 2.349014 48.864716 Paris -> 3
> GEOSEARCH k BYPOLYGON 4 12 37 16 37 16 39 12 39 ASC -> ["Palermo", "Catania", "edge1"]
> GEOSEARCH k BYPOLYGON 4 12 37 16 37 16 39 12 39 WITHDIST WITHHASH DESC
[["edge1", "138085.5878", 3479273021651468], ["Catania", "111411.0839", 3479447370796909], ["Paler
  mo", "56987.4933", 3479099956230698]]
> GEOSEARCH k BYPOLYGON 3 12 37 16 37 14 40 COUNT 1 -> ["Palermo"]
> GEOSEARCH k bypolygon 3 12 37 12.1 37 12 37.1 -> []
> GEOSEARCH k BYPOLYGON 5 0 30 20 30 20 50 10 40 0 50 ASC
["edge1", "Palermo", "Catania", "edge2"]
> GEOSEARCHSTORE d k BYPOLYGON 4 12 37 16 37 16 39 12 39 STOREDIST -> 3
! ~~ geosearchstore:d => DEL d | ZADD d * Palermo * Catania * edge1
> ZCARD d -> 3
> GEOSEARCH nokey BYPOLYGON 3 12 37 16 37 14 40 -> []
> GEOSEARCH k BYPOLYGON 2 12 37 16 37 -> -ERR GEOSEARCH BYPOLYGON must have at least 3 vertices
> GEOSEARCH k BYPOLYGON 4 12 37 16 37 16 39
-ERR GEOSEARCH BYPOLYGON must have at least 3 vertices
> GEOSEARCH k BYPOLYGON -1 12 37 16 37 16 39
-ERR GEOSEARCH BYPOLYGON must have at least 3 vertices
> GEOSEARCH k BYPOLYGON x 12 37 16 37 16 39 -> -ERR invalid number of vertices
> GEOSEARCH k BYPOLYGON 2147483647 12 37 16 37 16 39
-ERR GEOSEARCH BYPOLYGON must have at least 3 vertices
> GEOSEARCH k BYPOLYGON 3 12 37 16 137 16 39
-ERR invalid longitude,latitude pair 16.000000,137.000000
> GEOSEARCH k BYPOLYGON 3 12 37 16 x 16 39 -> -ERR value is not a valid float
> GEOSEARCH k BYPOLYGON 3 12 37 16 37 16 39 FROMLONLAT 15 37 -> -ERR syntax error
> GEOSEARCH k FROMLONLAT 15 37 BYPOLYGON 3 12 37 16 37 16 39 -> -ERR syntax error
> GEOSEARCH k BYRADIUS 1 km BYPOLYGON 3 12 37 16 37 16 39 -> -ERR syntax error
> GEOSEARCH k BYPOLYGON 3 12 37 16 37 16 39 BYRADIUS 1 km -> -ERR syntax error
"#,
    );
}
