import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { asRootstepError, CATALOGUE, describeError, isError, RootstepError } from "../src/errors.ts";

describe("the error catalogue", () => {
  it("says of every code whose side it is, what to do and with which exit code it ends", () => {
    for (const [code, entry] of Object.entries(CATALOGUE)) {
      expect(entry.hint, code).toMatch(/[.!`]$/u);
      expect([1, 2, 3, 4, 130], code).toContain(entry.exit);
    }
  });

  it("describes what, where, side, hint and causes", () => {
    const cause = Object.assign(new Error("connect refused"), { code: "ECONNREFUSED" });
    const error = new RootstepError("MODEL_UNREACHABLE", {
      what: "nobody answers",
      where: "http://127.0.0.1:9/v1",
      cause,
    });
    expect(describeError(error).split("\n")).toEqual([
      "error MODEL_UNREACHABLE: nobody answers",
      "  where: http://127.0.0.1:9/v1",
      "  side:  model server",
      `  do:    ${CATALOGUE.MODEL_UNREACHABLE.hint}`,
      "  cause: ECONNREFUSED: connect refused",
    ]);
    expect(error.retryable).toBe(true);
    expect(isError(error, "MODEL_UNREACHABLE")).toBe(true);
  });

  it("takes anything that is thrown", () => {
    expect(asRootstepError("text")).toMatchObject({ code: "INTERNAL", what: "text", side: "rootstep" });
    const known = new RootstepError("USAGE", { what: "x" });
    expect(asRootstepError(known)).toBe(known);
    expect(inspect(asRootstepError(new Error("inner")))).toContain("inner");
  });
});
