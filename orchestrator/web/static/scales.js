// Figures as the page shows them: classes of utilisation, numbers in words, ticks of an axis. Pure.

// Upper bounds of the classes u0 to u5; u6 is a link that has nothing left. A class is a colour and a width of a line.
const UTILISATION_BOUNDS = [0.005, 0.1, 0.25, 0.5, 0.75, 0.95];

/** The class of a share of a link's rate: 0 idle to 6 full. */
export function utilisationClass(share) {
  let found = 0;
  while (found < UTILISATION_BOUNDS.length && share >= UTILISATION_BOUNDS[found]) found += 1;
  return found;
}

/** The words beside each class, for the legend. */
export const UTILISATION_WORDS = ["idle", "below 10 %", "10 to 25 %", "25 to 50 %", "50 to 75 %", "75 to 95 %", "full"];

function threeDigits(value) {
  const size = Math.abs(value);
  if (size >= 100 || value === Math.round(value)) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : 2);
}

function scaled(value, steps, factor) {
  let place = 0;
  while (place < steps.length - 1 && Math.abs(value) >= factor * 0.9995) {
    value /= factor;
    place += 1;
  }
  return `${threeDigits(value)} ${steps[place]}`;
}

/** A rate in bits per second. */
export const rate = bps => (bps === 0 ? "0 Gb/s" : scaled(bps, ["bit/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"], 1000));

/** Several rates in one unit, that of the largest, which is named once behind them. */
export function rates(all) {
  const [, unit] = rate(Math.max(0, ...all)).split(" ");
  const size = { "bit/s": 1, "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9, "Tb/s": 1e12 }[unit];
  return `${all.map(bps => threeDigits(bps / size)).join(" ")} ${unit}`;
}

/** A number of bytes. */
export const bytes = count => scaled(count, ["B", "KiB", "MiB", "GiB"], 1024);

/** A length of fabric time in nanoseconds. */
export const span = ns => scaled(ns, ["ns", "us", "ms", "s"], 1000);

/** An instant of fabric time: always in microseconds, so that two of them can be compared at sight. */
export const instant = ns => `${Math.floor(ns / 1000).toLocaleString("en")} us`;

/** A share between 0 and 1. */
export function percent(share) {
  if (share === 0) return "0 %";
  return share < 0.001 ? "< 0.1 %" : `${threeDigits(Math.round(share * 1000) / 10)} %`;
}

const FEW_LOOKS = 0.8;

/** How many looks a second there are of those asked for, where they are few; "" where they are not, or not known. */
export const fewLooks = (got, asked) =>
  got === null || got >= FEW_LOOKS * asked ? "" : `${threeDigits(got)} of ${threeDigits(asked)}`;

export const count = value => value.toLocaleString("en");

/** How many there are, in words that fit the number. */
export const many = (value, one, more = `${one}s`) => `${count(value)} ${value === 1 ? one : more}`;

/** Round figures from `low` to `high`, about `wanted` of them: steps of 1, 2 or 5 times a power of ten. */
export function ticks(low, high, wanted) {
  if (!(high > low)) return [low];
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(size => size >= rough * 0.999);
  const found = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high * (1 + 1e-9); place += 1)
    found.push(place * step);
  return found;
}

/** The first names, and how many more there are. */
export function shortened(names, most = 3) {
  const more = names.length - most;
  return names.slice(0, most).join(" ") + (more > 0 ? ` and ${more} more` : "");
}
