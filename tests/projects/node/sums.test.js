import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hot, steady } from "./sums.js";

const setUp = steady(30_000_000);

describe("sums", () => {
  test("take time", async () => {
    await undefined;
    assert.notEqual(hot(60_000_000), steady(60_000_000) + setUp);
  });

  test("fail", () => {
    assert.equal(hot(1_000_000), 7, "it is never seven");
  });
});
