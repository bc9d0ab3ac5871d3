// The connection and server commands: what clients and tools ask a server about itself.

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Function;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.args.ClientAttributeOption;
import redis.clients.jedis.args.ClientType;
import redis.clients.jedis.params.ClientKillParams;
import redis.clients.jedis.resps.CommandDocument;
import redis.clients.jedis.resps.CommandInfo;
import redis.clients.jedis.resps.Slowlog;

final class Admin {
  private final Jedis r;
  private final Function<String, Jedis> connect;
  private final int protocol;

  /** {@code connect} makes a client of the same protocol with the given name. */
  Admin(Jedis r, Function<String, Jedis> connect, int protocol) {
    this.r = r;
    this.connect = connect;
    this.protocol = protocol;
  }

  void run() throws InterruptedException {
    connection();
    ownRecord();
    otherClients();
    commands();
    configuration();
    information();
    slowLog();
  }

  private void connection() {
    Check.equal("PING", r.ping(), "PONG");
    Check.equal("PING with a text", r.ping("hi"), "hi");
    Check.equal("ECHO", r.echo("héllo"), "héllo");
    List<String> time = r.time();
    double clock = Double.parseDouble(time.get(0)) + Double.parseDouble(time.get(1)) / 1e6;
    Check.between("TIME less our own", clock - System.currentTimeMillis() / 1e3, -5, 5);
  }

  private void ownRecord() {
    Check.equal("CLIENT GETNAME of none", r.clientGetname(), null);
    Check.equal("CLIENT SETNAME", r.clientSetname("subject"), "OK");
    Check.equal("CLIENT GETNAME", r.clientGetname(), "subject");
    Map<String, String> before = fields(r.clientInfo());
    boolean arrived = before.getOrDefault("lib-name", "").startsWith("jedis");
    Check.holds("the client's own SETINFO arrived", arrived, before);
    Check.equal("CLIENT SETINFO", r.clientSetInfo(ClientAttributeOption.LIB_VER, "9.9"), "OK");
    Map<String, String> info = fields(r.clientInfo());
    Check.equal("CLIENT INFO has the name", info.get("name"), "subject");
    Check.equal("CLIENT INFO has the version", info.get("lib-ver"), "9.9");
    Check.equal("CLIENT INFO has the protocol", info.get("resp"), String.valueOf(protocol));
    Check.equal("CLIENT INFO has the id", info.get("id"), String.valueOf(r.clientId()));
    boolean addresses = info.get("addr").contains(":") && info.get("laddr").contains(":");
    Check.holds("CLIENT INFO has the addresses", addresses, info);
    String listed = r.clientList(r.clientId()).strip();
    Check.equal("CLIENT LIST ID", fields(listed).get("name"), "subject");
    Check.holds("CLIENT LIST ends with the thread and its traffic",
        listed.matches(".* io-thread=\\d+ tot-net-in=\\d+ tot-net-out=\\d+ tot-cmds=\\d+"), listed);
    Check.equal("CLIENT NO-EVICT", r.clientNoEvictOff(), "OK");
    Check.equal("CLIENT NO-TOUCH", r.clientNoTouchOff(), "OK");
  }

  private static Map<String, String> fields(String line) {
    Map<String, String> fields = new HashMap<>();
    for (String field : line.strip().split(" ")) {
      String[] parts = field.split("=", 2);
      fields.put(parts[0], parts[1]);
    }
    return fields;
  }

  private void otherClients() throws InterruptedException {
    Jedis other = connect.apply("victim");
    long id = other.clientId();
    String normal = r.clientList(ClientType.NORMAL);
    boolean both = normal.contains(" name=subject ") && normal.contains(" name=victim ");
    Check.holds("CLIENT LIST TYPE", both, normal);
    ClientKillParams victim = new ClientKillParams().id(String.valueOf(id));
    Check.equal("CLIENT KILL ID", r.clientKill(victim), 1);
    Check.eventually("the killed client is gone", () -> !r.clientList().contains("name=victim"));
    Check.equal("CLIENT KILL of nobody", r.clientKill(victim), 0);
    Check.error("CLIENT KILL by address", "ERR No such client", () -> r.clientKill("1.2.3.4:5"));
    Check.equal("CLIENT UNBLOCK of nobody", r.clientUnblock(id), 0);
    Check.equal("CLIENT PAUSE", r.clientPause(1), "OK");
    Check.equal("CLIENT UNPAUSE", r.clientUnpause(), "OK");
    other.close();
  }

  private void commands() {
    long count = r.commandCount();
    Check.holds("COMMAND COUNT", count > 60, count);
    Map<String, CommandInfo> table = r.command();
    Check.equal("COMMAND lists as many", table.size(), count);
    CommandInfo get = table.get("get");
    List<Long> keys = List.of(get.getArity(), get.getFirstKey(), get.getLastKey(), get.getStep());
    Check.equal("COMMAND has GET's keys", keys, List.of(2L, 1L, 1L, 1L));
    boolean flags = get.getFlags().containsAll(List.of("readonly", "fast"));
    Check.holds("COMMAND has GET's flags", flags, get.getFlags());
    Map<String, CommandInfo> info = r.commandInfo("mset", "nosuch");
    Check.equal("COMMAND INFO", info.get("mset").getStep(), 2);
    CommandDocument set = r.commandDocs("set").get("set");
    Check.equal("COMMAND DOCS has the group", set.getGroup(), "string");
    Check.equal("COMMAND DOCS has the version", set.getSince(), "1.0.0");
    boolean summary = set.getSummary().length() > 10;
    Check.holds("COMMAND DOCS has a summary of SET", summary, set.getSummary());
    List<String> found = r.commandGetKeys("MSET", "a", "1", "b", "2");
    Check.equal("COMMAND GETKEYS", found, List.of("a", "b"));
  }

  private void configuration() {
    String effort = "active-expire-effort";
    Check.equal("CONFIG GET", r.configGet(effort), Map.of(effort, "1"));
    Check.equal("CONFIG SET", r.configSet(effort, "7"), "OK");
    Check.equal("CONFIG GET after SET", r.configGet(effort), Map.of(effort, "7"));
    r.configSet(effort, "1");
    TreeSet<String> both = new TreeSet<>(r.configGet("port", "databas*").keySet());
    Check.equal("CONFIG GET of two patterns", List.copyOf(both), List.of("databases", "port"));
    Check.equal("CONFIG GET of nothing", r.configGet("no-such-thing"), Map.of());
    Check.equal("CONFIG RESETSTAT", r.configResetStat(), "OK");
  }

  private void information() {
    String version = field(r.info(), "redis_version");
    Check.holds("INFO has the version", version.startsWith("8.0."), version);
    List<String> numbers = List.of(
        "process_id", "tcp_port", "uptime_in_seconds", "connected_clients", "used_memory",
        "total_commands_processed", "keyspace_hits", "expired_keys");
    for (String name : numbers) {
      String value = field(r.info(), name);
      Check.holds("INFO has " + name + " as a number", value.matches("\\d+"), value);
    }
    Check.equal("INFO has the role", field(r.info(), "role"), "master");
    r.setex("k", 100, "v");
    String keyspace = field(r.info("keyspace"), "db0");
    Check.holds("INFO keyspace", keyspace.startsWith("keys=1,expires=1,"), keyspace);
    Check.equal("INFO of one section", field(r.info("keyspace"), "redis_version"), "none");
    String setex = field(r.info("commandstats"), "cmdstat_setex");
    Check.holds("INFO commandstats", setex.matches("calls=[1-9].*"), setex);
    r.flushDB();
  }

  private static String field(String info, String name) {
    return Arrays.stream(info.split("\r\n"))
        .filter(line -> line.startsWith(name + ":"))
        .map(line -> line.substring(name.length() + 1))
        .findFirst()
        .orElse("none");
  }

  private void slowLog() {
    r.configSet("slowlog-log-slower-than", "0");
    r.set("slow", "log");
    r.configSet("slowlog-log-slower-than", "10000");
    List<Slowlog> found =
        r.slowlogGet(10).stream()
            .filter(entry -> entry.getArgs().equals(List.of("SET", "slow", "log")))
            .toList();
    Check.equal("SLOWLOG GET", found.size(), 1);
    double age = found.get(0).getTimeStamp() - System.currentTimeMillis() / 1e3;
    Check.between("SLOWLOG has the start", age, -10, 5);
    Check.holds("SLOWLOG LEN", r.slowlogLen() >= 1, r.slowlogLen());
    Check.equal("SLOWLOG RESET", r.slowlogReset(), "OK");
    Check.equal("SLOWLOG LEN after it", r.slowlogLen(), 0);
    r.del("slow");
  }
}
