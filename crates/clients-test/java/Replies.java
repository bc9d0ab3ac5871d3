// The requests that all clients send alike: cases/replies.txt says their form.

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisException;

final class Replies {
  /** The database is empty before and after. */
  static void run(Jedis r) {
    int count = 0;
    for (String line : lines()) {
      if (line.isEmpty() || line.startsWith("#")) {
        continue;
      }
      String[] parts = line.split(" \\| ");
      Check.equal(parts[0], answer(r, parts[2].split(" ")), parts[1]);
      count++;
    }
    Check.holds("replies that all clients read alike", count > 30, count);
  }

  private static Iterable<String> lines() {
    try {
      return Files.readAllLines(Path.of(System.getenv("WEFT_REPLIES")));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The reply in the notation of the file. */
  private static String answer(Jedis r, String[] words) {
    Object reply;
    try {
      reply = Check.raw(r, words[0], Arrays.copyOfRange(words, 1, words.length));
    } catch (JedisException raised) {
      return "-" + raised.getMessage();
    }
    if (reply == null) {
      return "_";
    }
    return reply instanceof byte[] bytes ? "+" + new String(bytes, StandardCharsets.UTF_8)
        : ":" + reply;
  }

  private Replies() {}
}
