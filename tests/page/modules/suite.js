// What the tests of the page's modules are written with: a list of named tests, and equality with words for a failure.

export const tests = [];

export const test = (name, body) => tests.push({ name, body });

export function equal(found, wanted) {
  const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`found ${one}, wanted ${other}`);
}

export function holds(claim, words) {
  if (!claim) throw new Error(words);
}
