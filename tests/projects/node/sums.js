/** Costs twice what steady does. */
export function hot(rounds) {
  let sum = 1;
  for (let round = 0; round < 2 * rounds; round++) sum = (Math.imul(sum ^ round, 0x9e3779b1) << 7) | (sum >>> 25); // hot
  return sum;
}

/** Costs what it costs. */
export function steady(rounds) {
  let sum = 3;
  for (let round = 0; round < rounds; round++) sum = (Math.imul(sum ^ round, 0x85ebca6b) << 9) | (sum >>> 23); // steady
  return sum;
}
