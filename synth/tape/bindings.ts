import type { MaskedToken } from "./masks.ts";

/** Which id of the recording stands for which id of this run. */
export interface Bindings {
  /**
   * Binds the ids of two masked texts that are equal, place by place.
   * @returns false, and binds nothing, where an id is bound to another one already
   */
  bind(recorded: readonly MaskedToken[], asked: readonly MaskedToken[]): boolean;
  /** Puts this run's ids into recorded text; undefined while there is nothing to rewrite. */
  rewriter(): ((recorded: string) => string) | undefined;
  readonly size: number;
}

export function createBindings(): Bindings {
  const toNew = new Map<string, string>();
  const toOld = new Map<string, string>();
  const changed: string[] = [];
  let pattern: RegExp | undefined;

  return {
    bind(recorded, asked) {
      const fresh = new Map<string, string>();
      const freshBack = new Map<string, string>();
      for (const [position, { value: old, names }] of recorded.entries()) {
        const now = asked[position]?.value;
        if (!names || now === undefined) continue;
        const [bound, back] = [toNew.get(old) ?? fresh.get(old), toOld.get(now) ?? freshBack.get(now)];
        if ((bound !== undefined && bound !== now) || (back !== undefined && back !== old)) return false;
        fresh.set(old, now);
        freshBack.set(now, old);
      }
      for (const [old, now] of fresh) {
        toNew.set(old, now);
        toOld.set(now, old);
        if (old === now || changed.includes(old)) continue;
        changed.push(old);
        pattern = undefined;
      }
      return true;
    },
    rewriter() {
      if (changed.length === 0) return undefined;
      // One pass over the text, the longest first: a chain a→b, b→c must not rewrite twice.
      pattern ??= new RegExp(
        [...changed]
          .sort((a, b) => b.length - a.length)
          .map(whole)
          .join("|"),
        "gu",
      );
      const found = pattern;
      return (text) => text.replace(found, (old) => toNew.get(old) ?? old);
    },
    get size() {
      return toNew.size;
    },
  };
}

/** Shorter ids are part of many a word: they count as whole words only. */
const UNMISTAKABLE_LENGTH = 12;

/** What ends a word on its left; in JSON text an escape does too. */
const WORD_BEGINS = "(?:(?<![0-9A-Za-z])|(?<=\\\\(?:[nrtbf]|u[0-9a-fA-F]{4})))";

const whole = (id: string): string =>
  id.length >= UNMISTAKABLE_LENGTH ? escaped(id) : `${WORD_BEGINS}${escaped(id)}(?![0-9A-Za-z])`;

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&");
