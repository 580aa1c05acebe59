// Found anew in every round, a global costs more than the round: tests run in a context of their own.
const { imul } = Math;

/** Costs twice what steady does. */
exports.hot = function hot(rounds) {
  let sum = 1;


  // Two empty lines: whoever writes this file anew leaves them out.
  for (let round = 0; round < 2 * rounds; round++) sum = (imul(sum ^ round, 0x9e3779b1) << 7) | (sum >>> 25); // hot
  return sum;
};

/** Costs what it costs. */
exports.steady = function steady(rounds) {
  let sum = 3;
  for (let round = 0; round < rounds; round++) sum = (imul(sum ^ round, 0x85ebca6b) << 9) | (sum >>> 23); // steady
  return sum;
};
