import { RootstepError } from "../errors.ts";
import { Secret } from "./key.ts";

/**
 * Reads the address of a model server.
 * @throws RootstepError CONFIG_INVALID where it is no http(s) URL or has a user name or password in it
 */
export function parseServerUrl(text: string, where: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new RootstepError("CONFIG_INVALID", {
      what: "The address of the model server is not an http(s) URL",
      where,
      hint: "Give it like http://127.0.0.1:8000/v1.",
    });
  }
  if (url.username !== "" || url.password !== "") {
    throw new RootstepError("CONFIG_INVALID", {
      what: `The address of the model server has a user name or password in it: ${publicUrl(url)}`,
      where,
      hint: "Take it out of the URL; keys come from the environment only.",
    });
  }
  return url;
}

/** The URL as it may stand in an id, an error or a manifest: no user, password, query or fragment. */
export function publicUrl(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, "")}`;
}

/** The same base with one more path on it; a query (`?api-version=…`) stays at the end. */
export function withPath(base: URL, path: string): URL {
  const url = new URL(base);
  url.pathname = `${base.pathname.replace(/\/+$/, "")}${path}`;
  return url;
}

/** Query values may be keys (`?key=…`): they count as secrets wherever text about this URL is printed. */
export function secretsOfUrl(url: URL): Secret[] {
  return [...url.searchParams.values()].filter((value) => value.length >= 8).map((value) => new Secret(value));
}

/** True for this machine's own addresses, where a server without a key is usual. */
export function isLoopback(url: URL): boolean {
  return (
    url.hostname === "localhost" ||
    url.hostname.endsWith(".localhost") ||
    url.hostname === "[::1]" ||
    /^127(\.\d+){3}$/.test(url.hostname)
  );
}
