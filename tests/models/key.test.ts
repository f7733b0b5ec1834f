import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { keyFromEnvironment, redact, redactedCause, Secret } from "../../src/models/key.ts";
import { isLoopback, parseServerUrl, publicUrl, secretsOfUrl } from "../../src/models/server-url.ts";

const VALUE = 'sk-"very/secret"+key=0123';
const secret = new Secret(VALUE);

test("a secret shows itself only when asked to", () => {
  const holder = { nested: [secret], secret };
  for (const shown of [
    String(secret),
    `${secret}`,
    JSON.stringify(holder),
    inspect(holder, { depth: 10, showHidden: true }),
    JSON.stringify({ ...secret }),
  ]) {
    expect(shown).not.toContain("very");
  }
  expect(JSON.stringify({ secret })).toBe('{"secret":"[redacted]"}');
  expect(secret.reveal()).toBe(VALUE);
});

describe("keys from the environment", () => {
  test("the first variable that is set and not blank", () => {
    expect(keyFromEnvironment(["A", "B", "C"], { A: " ", B: "key-of-b\n", C: "key-of-c" }).reveal()).toBe("key-of-b");
  });

  test("a missing key names the variables", () => {
    expect(() => keyFromEnvironment(["A", "B"], {})).toThrow(
      expect.objectContaining({ code: "KEY_MISSING", what: "No API key: A or B is not set" }),
    );
  });

  test("a key that no header can carry is refused without being shown", () => {
    for (const value of ["two words", "line\nbreak", "schlüssel"]) {
      try {
        keyFromEnvironment(["A"], { A: value });
        expect.fail("accepted");
      } catch (error) {
        expect(error).toMatchObject({ code: "CONFIG_INVALID" });
        expect(inspect(error)).not.toContain(value);
      }
    }
  });
});

test("redaction finds a secret as it is, in a URL, in JSON and in base64", () => {
  const forms = [VALUE, encodeURIComponent(VALUE), JSON.stringify(VALUE), Buffer.from(VALUE).toString("base64")];
  expect(redact(forms.join(" | "), [secret])).toBe('[redacted] | [redacted] | "[redacted]" | [redacted]');
  expect(redact("a plain x", [new Secret("x")])).toBe("a plain x");
});

test("a redacted cause keeps name, code and message of the chain, and nothing else", () => {
  const inner = Object.assign(new RangeError(`inner ${VALUE}`), { code: "EINNER", headers: { authorization: VALUE } });
  const cause = redactedCause(new TypeError("outer", { cause: inner }), [secret]);
  expect(cause).toMatchObject({ name: "TypeError", message: "outer" });
  expect(cause?.cause).toMatchObject({ name: "RangeError", message: "inner [redacted]", code: "EINNER" });
  expect(inspect(cause, { depth: 10, showHidden: true })).not.toContain("very");
});

describe("server addresses", () => {
  test("a password in the URL is refused without being shown", () => {
    try {
      parseServerUrl("https://user:pa55word@host/v1", "baseUrl");
      expect.fail("accepted");
    } catch (error) {
      expect(error).toMatchObject({ code: "CONFIG_INVALID", where: "baseUrl" });
      expect(inspect(error)).not.toMatch(/user:|pa55word/);
    }
  });

  test.each(["", "127.0.0.1:8000", "ftp://host", "file:///etc/passwd"])("%j is no address", (text) => {
    expect(() => parseServerUrl(text, "baseUrl")).toThrow(/not an http\(s\) URL/);
  });

  test("the public form has neither query nor fragment; the query counts as secret", () => {
    const url = new URL("https://Host:8443/v1/?key=0123456789&v=1#x");
    expect(publicUrl(url)).toBe("https://host:8443/v1");
    expect(secretsOfUrl(url).map((s) => s.reveal())).toEqual(["0123456789"]);
  });

  test("loopback", () => {
    const here = ["http://127.0.0.1:1", "http://localhost", "http://[::1]:8", "http://127.9.8.7", "http://a.localhost"];
    const there = ["http://127.0.0.1.example", "http://localhost.example", "http://10.0.0.1", "https://api.openai.com"];
    expect(here.map((text) => isLoopback(new URL(text)))).toEqual(here.map(() => true));
    expect(there.map((text) => isLoopback(new URL(text)))).toEqual(there.map(() => false));
  });
});
