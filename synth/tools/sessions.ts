/**
 * Sessions of MCP over HTTP. Whoever has a session's id has the session: the program and the tape see a stand-in, the
 * server its own id. So a replay needs no session, and what goes live after the cut gets a new one under the old name.
 */
export interface ToolSessions {
  /** The stand-in of an id that a server has just given. */
  standInFor(tool: string, real: string): string;
  /** Undefined where no server knows that session (any more). */
  realOf(standIn: string): string | undefined;
  /** A new session of the server in the place of a recorded one. */
  bind(tool: string, standIn: string, real: string): void;
}

/** @param taken stand-ins that a tape uses already */
export function createToolSessions(taken: ReadonlySet<string> = new Set()): ToolSessions {
  const reals = new Map<string, string>();
  const standIns = new Map<string, string>();
  let count = 0;
  return {
    standInFor(tool, real) {
      const known = standIns.get(`${tool} ${real}`);
      if (known !== undefined) return known;
      let standIn: string;
      do standIn = `${tool}-session-${++count}`;
      while (taken.has(standIn));
      standIns.set(`${tool} ${real}`, standIn);
      reals.set(standIn, real);
      return standIn;
    },
    realOf: (standIn) => reals.get(standIn),
    bind(tool, standIn, real) {
      reals.set(standIn, real);
      standIns.set(`${tool} ${real}`, standIn); // the server names it in each of its answers
    },
  };
}
