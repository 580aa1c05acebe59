// Code that V8 compiles, and its builtins in between: busy.js SECONDS
function fib(n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

function sorted() {
  const all = [];
  for (let i = 0; i < 2000; i++) all.push({ key: (i * 7919) % 2003, text: String(i) });
  all.sort((a, b) => a.key - b.key);
  return all.length;
}

class Round {
  run() {
    return fib(18) + sorted() + JSON.stringify(JSON.parse(JSON.stringify({ a: [1, 2, 3] }))).length;
  }
}

const end = process.cpuUsage().user + Number(process.argv[2]) * 1e6;
let sum = 0;
while (process.cpuUsage().user < end) sum += new Round().run();
