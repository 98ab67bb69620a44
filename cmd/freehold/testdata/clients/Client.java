import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.Map;
import net.rubyeye.xmemcached.GetsResponse;
import net.rubyeye.xmemcached.MemcachedClient;
import net.rubyeye.xmemcached.XMemcachedClientBuilder;
import net.rubyeye.xmemcached.exception.MemcachedServerException;
import net.rubyeye.xmemcached.utils.AddrUtil;

/** The commands of xmemcached against a server. Its address is the argument. */
public class Client {
	static int checks;

	static void same(Object got, Object want, String what) {
		checks++;
		if (!want.equals(got)) {
			System.err.println(what + ": " + got + ", want " + want);
			System.exit(1);
		}
	}

	static void absent(Object got, String what) { same(String.valueOf(got), "null", what); }

	public static void main(String[] args) throws Exception {
		var builder = new XMemcachedClientBuilder(AddrUtil.getAddresses(args[0]));
		builder.setOpTimeout(30_000);
		MemcachedClient c = builder.build();
		for (String version : c.getVersions().values()) {
			same(version.matches("\\d+\\.\\d+\\.\\d+"), true, "version " + version);
		}
		same(c.set("a", 100, "text"), true, "set");
		same(c.get("a"), "text", "get");
		absent(c.get("none"), "get of no item");
		byte[] bytes = new byte[900_000];
		Arrays.fill(bytes, (byte) '\r');
		Object[] values = {1, 2L, 1.5, true, "", "\r\nEND\r\n", "x".repeat(100_000)};
		for (Object value : values) {
			same(c.set("type", 0, value), true, "set of " + value.getClass());
			same(c.get("type"), value, "get of " + value.getClass());
		}
		same(c.set("bytes", 0, bytes), true, "set of bytes");
		same(Arrays.equals((byte[]) c.get("bytes"), bytes), true, "get of bytes");
		same(c.add("a", 0, "2"), false, "add of an item");
		same(c.add("b", 0, "2"), true, "add");
		same(c.replace("none", 0, "1"), false, "replace of no item");
		same(c.replace("b", 0, "2"), true, "replace");
		same(c.append("b", "3"), true, "append");
		same(c.prepend("b", "1"), true, "prepend");
		same(c.get("b"), "123", "all of it");
		same(c.incr("n", 5, 10), 10L, "incr with an initial value");
		same(c.incr("n", 5), 15L, "incr");
		same(c.decr("n", 20), 0L, "decr");
		Map<String, Object> many = c.get(Arrays.asList("a", "b", "none"));
		same(many, Map.of("a", "text", "b", "123"), "get of many");
		GetsResponse<String> found = c.gets("b");
		same(c.cas("b", 0, "four", found.getCas()), true, "cas");
		same(c.cas("b", 0, "five", found.getCas()), false, "cas of an older state");
		same(c.touch("b", 100), true, "touch");
		same(c.touch("none", 100), false, "touch of no item");
		same(c.delete("b"), true, "delete");
		same(c.delete("b"), false, "delete of no item");
		c.setWithNoReply("quiet", 0, "1");
		c.deleteWithNoReply("quiet");
		absent(c.get("quiet"), "get after noreply");
		try {
			c.incr("a", 1);
			same("a number", "an error", "incr of text");
		} catch (MemcachedServerException | net.rubyeye.xmemcached.exception.MemcachedClientException e) {
			checks++;
		}
		for (Map<String, String> stats : c.getStats().values()) {
			same(stats.containsKey("limit_maxbytes"), true, "stats");
		}
		c.flushAll();
		absent(c.get("a"), "get after a flush");
		c.shutdown();
		System.out.println(checks + " checks");
	}
}
