// The commands of npm's memcached against a server. Its address is the argument.
const assert = require("assert");
const { promisify } = require("util");
const Memcached = require("memcached");

const client = new Memcached(process.argv[2], { timeout: 30000, maxValue: 4 << 20 });
const call = (name, ...args) => promisify(client[name]).apply(client, args);
let checks = 0;

async function same(name, args, want) {
	const got = await call(name, ...args);
	assert.deepStrictEqual(got, want, `${name}(${args.map((a) => String(a).slice(0, 20))}): ${String(got).slice(0, 100)}, want ${want}`);
	checks++;
}

async function fails(name, args, pattern) {
	await assert.rejects(call(name, ...args), pattern);
	checks++;
}

(async () => {
	const [version] = await call("version");
	assert.match(version.version, /^\d+\.\d+\.\d+$/);
	await same("set", ["a", "text", 100], true);
	await same("get", ["a"], "text");
	await same("get", ["none"], undefined);
	for (const value of [1, 1.5, true, { x: [1, 2] }, "\r\nEND\r\n", "ü".repeat(100000), Buffer.from([0, 13, 10, 255])]) {
		await same("set", ["type", value, 0], true);
		await same("get", ["type"], value);
	}
	await fails("add", ["a", "2", 0], /not stored/);
	await same("add", ["b", "1", 0], true);
	await fails("replace", ["none", "1", 0], /not stored/);
	await same("replace", ["b", "2", 0], true);
	await same("append", ["b", "3"], true);
	await same("prepend", ["b", "1"], true);
	await same("get", ["b"], "123");
	await same("set", ["n", 123, 0], true);
	await same("incr", ["n", 7], 130);
	await same("decr", ["n", 200], 0);
	await same("incr", ["none", 1], false);
	await fails("incr", ["a", 1], /cannot increment or decrement non-numeric value/);
	await same("getMulti", [["a", "n", "none"]], { a: "text", n: 0 });
	const { cas } = await call("gets", "a");
	await same("cas", ["a", "new", cas, 0], true);
	await same("cas", ["a", "newer", cas, 0], false);
	await same("touch", ["a", 100], true);
	await same("touch", ["none", 100], false);
	await same("del", ["a"], true);
	await same("del", ["a"], false);
	const [stats] = await call("stats");
	assert.ok(stats.limit_maxbytes > 0);
	await call("flush");
	await same("get", ["b"], undefined);
	console.log(`${checks} checks`);
	client.end();
})().catch((error) => {
	console.error(error);
	process.exit(1);
});
