import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { type RecordingFetch, type RecordingFetchOptions, recordingFetch } from "../../synth/fetch/recording.ts";
import { type ReplayingFetch, type ReplayingFetchOptions, replayingFetch } from "../../synth/fetch/replaying.ts";
import type { Action } from "../../synth/proxy/action.ts";
import { loadTape, type TapeFolder } from "../../synth/tape/loader.ts";
import { recordFrom, type Seen, type TestRecording } from "./proxy-setting.ts";

export const ABOUT = { version: "0.0.0", now: () => new Date(0) };

/** A path that is taken away when the test is over. */
export function ownFolder(name: string): string {
  const parent = mkdtempSync(join(tmpdir(), "rootstep-fetch-"));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  return join(parent, name);
}

/** A recording proxy whose tape is taken away when the test is over. */
export async function recordOverHttp(url: string): Promise<TestRecording> {
  const recording = await recordFrom(url);
  onTestFinished(() => rmSync(dirname(recording.folder), { recursive: true, force: true }));
  return recording;
}

export interface FetchRecording extends RecordingFetch {
  readonly folder: string;
  /** Ends the recording and opens its tape. */
  tape(answer?: string): TapeFolder;
}

/** A recording `fetch` before a model server at that base URL. */
export function recordInProcess(url: string, more: Partial<RecordingFetchOptions> = {}): FetchRecording {
  const folder = ownFolder("tape");
  const upstream = new URL(url);
  const recording = recordingFetch({ ...ABOUT, out: folder, run: "test", upstream, fetch: globalThis.fetch, ...more });
  return Object.assign(recording, {
    folder,
    tape(answer?: string) {
      recording.finish({ answer });
      return loadTape(folder);
    },
  });
}

/** A replaying `fetch`; with `liveUrl` that server is asked after the cut, else any network use fails. */
export function replayInProcess(
  tape: TapeFolder,
  more: Partial<ReplayingFetchOptions> & { readonly liveUrl?: string } = {},
): ReplayingFetch {
  const { liveUrl } = more;
  const live = liveUrl === undefined ? undefined : { upstream: new URL(liveUrl), fetch: globalThis.fetch };
  return replayingFetch({ ...ABOUT, tape, live, ...more });
}

export const cutAt = (at: number, text?: string): { readonly at: number; readonly action?: Action } =>
  text === undefined ? { at } : { at, action: { kind: "text", text } };

/** What a client sees of one chat call, with the pieces as they arrive. */
export async function askVia(
  fetch: typeof globalThis.fetch,
  base: string,
  body: unknown,
  {
    path = "/chat/completions",
    headers = {},
    signal,
  }: { path?: string; headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Seen> {
  const response = await fetch(`${base}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
  const chunks: string[] = [];
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) chunks.push(decoder.decode(chunk, { stream: true }));
  return { status: response.status, headers: response.headers, text: chunks.join(""), chunks };
}
