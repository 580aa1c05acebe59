import { hot } from "./sums.js";

test("of a module", () => {
  expect(hot(1_000_000)).not.toBe(7);
});
