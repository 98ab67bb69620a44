<?php
// The commands of php-memcached against a server. The address follows as arguments.
$c = new Memcached();
$c->setOption(Memcached::OPT_BINARY_PROTOCOL, false);
$c->setOption(Memcached::OPT_COMPRESSION, false);
$c->addServer($argv[1], (int)$argv[2]);
$checks = 0;

function same($got, $want, string $what) {
	global $checks, $c;
	$checks++;
	if ($got !== $want) {
		fwrite(STDERR, "$what: " . var_export($got, true) . ", want " . var_export($want, true) . ", " . $c->getResultMessage() . "\n");
		exit(1);
	}
}

same(preg_match('/^\d+\.\d+\.\d+$/', current($c->getVersion())), 1, "version");
same($c->set("a", "text", 100), true, "set");
same($c->get("a"), "text", "get");
same($c->get("none"), false, "get of no item");
same($c->getResultCode(), Memcached::RES_NOTFOUND, "its result");
foreach ([1, 1.5, true, null, ["x" => [1, 2]], str_repeat("x", 900000), "", "\r\nEND\r\n"] as $i => $value) {
	same($c->set("type$i", $value), true, "set of type $i");
	same($c->get("type$i"), $value, "get of type $i");
}
same($c->add("a", "2"), false, "add of an item");
same($c->add("b", "1"), true, "add");
same($c->replace("none", "1"), false, "replace of no item");
same($c->replace("b", "2"), true, "replace");
same($c->append("b", "3"), true, "append");
same($c->prepend("b", "1"), true, "prepend");
same($c->get("b"), "123", "all of it");
same($c->increment("b", 7), 130, "increment");
same($c->decrement("b", 200), 0, "decrement");
same($c->increment("none"), false, "increment of no item");
same($c->setMulti(["m1" => 1, "m2" => "two"]), true, "setMulti");
same($c->getMulti(["m1", "m2", "m3"]), ["m1" => 1, "m2" => "two"], "getMulti");
$found = $c->get("m2", null, Memcached::GET_EXTENDED);
same($c->cas($found["cas"], "m2", "three"), true, "cas");
same($c->cas($found["cas"], "m2", "four"), false, "cas of an older state");
same($c->getResultCode(), Memcached::RES_DATA_EXISTS, "its result");
same($c->touch("m2", 100), true, "touch");
same($c->touch("none", 100), false, "touch of no item");
same($c->set("old", "1", -1), true, "set of an expired item");
same($c->get("old"), false, "get of an expired item");
same($c->delete("m1"), true, "delete");
same($c->deleteMulti(["m1", "m2"]), ["m1" => Memcached::RES_NOTFOUND, "m2" => true], "deleteMulti");
same($c->set("large", random_bytes(2 << 20)), false, "set of a value that is too large");
same(current($c->getStats())["limit_maxbytes"] > 0, true, "stats");
same($c->flush(), true, "flush");
same($c->get("a"), false, "get after a flush");
echo "$checks checks\n";
