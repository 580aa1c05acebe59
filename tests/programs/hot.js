// Spends its time on one line, after the compiler has made it fast.
// Usage: hot.js SECONDS
function burn(rounds) {
  let x = 1;
  for (let i = 0; i < rounds; i++) { // loop
    x = (Math.imul(x, 1664525) + 1013904223) | 0; // hot
  }
  return x;
}

const end = Date.now() + 1000 * Number(process.argv[2] || 1);
let sum = 0;
while (Date.now() < end) {
  sum += burn(3000000);
}
if (sum === 42) console.log(sum);
