import { bytes, fewLooks, instant, many, percent, rate, rates, shortened, span, ticks, utilisationClass } from "/static/scales.js";
import { equal, holds, test } from "./suite.js";

test("a share of a link's rate has a class", () => {
  equal([0, 0.004, 0.005, 0.099, 0.1, 0.3, 0.6, 0.8, 0.95, 1].map(utilisationClass), [0, 0, 1, 1, 2, 3, 4, 5, 6, 6]);
});

test("figures have three digits and a unit", () => {
  equal([0, 999, 1000, 12_345, 99_960_000_000, 100e9, 3.98e12].map(rate), [
    "0 Gb/s",
    "999 bit/s",
    "1 kb/s",
    "12.3 kb/s",
    "100.0 Gb/s",
    "100 Gb/s",
    "3.98 Tb/s",
  ]);
  equal([rates([581e9, 0, 9e9]), rates([0, 0]), rates([1.2e12, 5e11])], [
    "581 0 9 Gb/s",
    "0 0 Gb/s",
    "1.20 0.50 Tb/s",
  ]);
  equal([0, 1023, 1536, 1 << 20].map(bytes), ["0 B", "1023 B", "1.50 KiB", "1 MiB"]);
  equal([5, 1500, 2_000_000, 3e9].map(span), ["5 ns", "1.50 us", "2 ms", "3 s"]);
  equal([0, 0.0004, 0.016, 0.5, 1].map(percent), ["0 %", "< 0.1 %", "1.60 %", "50 %", "100 %"]);
  equal([0, 1_234_567].map(instant), ["0 us", "1,234 us"]);
  equal([many(1, "port"), many(2, "port"), many(2, "loss", "losses")], ["1 port", "2 ports", "2 losses"]);
});

test("few looks are told of, and no others", () => {
  equal([fewLooks(null, 5), fewLooks(5, 5), fewLooks(4.01, 5)], ["", "", ""]);
  equal([fewLooks(1.234, 5), fewLooks(0.5, 2.5)], ["1.23 of 5", "0.50 of 2.50"]);
});

test("ticks are round and stay inside", () => {
  equal(ticks(0, 100, 5), [0, 20, 40, 60, 80, 100]);
  equal(ticks(3, 11, 4), [4, 6, 8, 10]);
  equal(ticks(7, 7, 4), [7]);
  for (const high of [1e-9, 0.3, 17, 8.1e11]) holds(ticks(0, high, 5).length <= 7, `too many below ${high}`);
});

test("long lists of names are cut", () => {
  equal(shortened(["a", "b"]), "a b");
  equal(shortened(["a", "b", "c", "d", "e"]), "a b c and 2 more");
});
