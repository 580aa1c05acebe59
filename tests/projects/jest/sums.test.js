const { hot, steady } = require("./sums.js");

const setUp = steady(30_000_000);

describe("sums", () => {


  test("take time", () => {
    expect(hot(60_000_000)).not.toBe(steady(60_000_000) + setUp);
  });
});
