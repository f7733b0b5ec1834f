import { describe, expect, it } from "vitest";
import { inconsistencies } from "../../src/trajectory/invariants.ts";
import { trajectorySchema } from "../../src/trajectory/schema.ts";
import { recordingsOf } from "../../synth/proxy/tape-recordings.ts";
import { cutAfterStep, cutAtStep } from "../../synth/steps/cut-at-step.ts";
import { stepPolicies, stepPolicyById } from "../../synth/steps/registry.ts";
import type { StepPolicy } from "../../synth/steps/step-policy.ts";
import { type TapeTrajectoryOptions, trajectoryFromTape } from "../../synth/steps/trajectory.ts";
import type { StoredCall } from "../../synth/tape/folder-schema.ts";
import { loadTape } from "../../synth/tape/loader.ts";
import { requestKey } from "../../synth/tape/request-key.ts";
import { createTapeWriter } from "../../synth/tape/writer.ts";
import { freshFolder, tapeHeader } from "./proxy-setting.ts";

type Json = Record<string, unknown>;
type Message = Json & { readonly role: string };

interface Call {
  readonly lane?: string;
  readonly laneBy?: StoredCall["laneBy"];
  readonly endpoint?: StoredCall["endpoint"];
  readonly request?: Json;
  readonly messages?: readonly Message[];
  readonly says?: string;
  readonly calls?: readonly [id: string, name: string, args: string][];
  /** In the place of a chat completion. */
  readonly answer?: string;
  readonly status?: number;
  readonly outcome?: StoredCall["response"]["outcome"];
  readonly retry?: number;
  readonly from?: StoredCall["from"];
  /** Milliseconds; by default one call after the other. */
  readonly asked?: number;
  readonly took?: number;
}

const chatAnswer = ({ says = "", calls = [] }: Call): string => {
  const tool_calls = calls.map(([id, name, args]) => ({ id, type: "function", function: { name, arguments: args } }));
  const message = {
    role: "assistant",
    content: says === "" ? null : says,
    ...(calls.length > 0 ? { tool_calls } : {}),
  };
  const usage = { prompt_tokens: 10, completion_tokens: 2 };
  return JSON.stringify({ model: "m-1", choices: [{ index: 0, message }], usage });
};

/** A tape of these calls, opened. */
function taped(calls: readonly Call[], { ended = true } = {}) {
  const folder = freshFolder("tape");
  const writer = createTapeWriter(folder, { ...tapeHeader, command: ["python3", "agents.py"] });
  calls.forEach((call, index) => {
    const endpoint = call.endpoint ?? "chat/completions";
    const asked = Buffer.from(
      JSON.stringify(
        call.request ?? { model: "m", messages: call.messages ?? [{ role: "user", content: `ask ${index}` }] },
      ),
    );
    writer.call({
      type: "call",
      index,
      lane: call.lane ?? "a",
      laneBy: call.laneBy ?? "url",
      endpoint,
      retry: call.retry ?? 0,
      from: call.from ?? "live",
      askedAt: call.asked ?? index * 10,
      tookMs: call.took ?? 5,
      request: { headers: {}, body: writer.body(asked), key: requestKey(endpoint, asked) },
      response: {
        outcome: call.outcome ?? "complete",
        status: call.status ?? 200,
        headers: {},
        body: writer.body(Buffer.from(call.answer ?? chatAnswer(call))),
      },
    });
  });
  const end = { exitCode: 0, signal: null, timedOut: false, answer: "42" };
  if (ended) writer.end({ type: "end", calls: calls.length, stdout: writer.body(Buffer.from("out")), ...end });
  writer.close();
  return loadTape(folder);
}

const trajectory = (calls: readonly Call[], options: TapeTrajectoryOptions = {}) => {
  const made = trajectoryFromTape(taped(calls), options);
  // What leaves here is what every reader of trajectories takes.
  expect(trajectorySchema.parse(JSON.parse(JSON.stringify(made)))).toEqual(made);
  expect(inconsistencies(made).filter(({ kind }) => kind !== "empty-step")).toEqual([]);
  return made;
};
const steps = (calls: readonly Call[], options: TapeTrajectoryOptions = {}) => trajectory(calls, options).steps;
const perTurn = { policy: stepPolicyById("per-agent-turn") };

const tool = (tool_call_id: string, content: string): Message => ({ role: "tool", tool_call_id, content });
const called = (id: string, name: string, args: string): Message => ({
  role: "assistant",
  content: null,
  tool_calls: [{ id, type: "function", function: { name, arguments: args } }],
});
const user = (content: string): Message => ({ role: "user", content });
const system = (content: string): Message => ({ role: "system", content });

describe("a trajectory from a tape", () => {
  it("has a step per call, with agent, answer, tokens, time and the call to cut at", () => {
    const made = trajectory([
      { lane: "planner", messages: [system("You plan."), user("How many apples?")], says: "Count them." },
      { lane: "solver", says: "7" },
    ]);
    expect(made).toMatchObject({
      id: "test",
      system: "python3 agents.py",
      stepPolicy: "per-call",
      task: { text: "How many apples?", source: "recorded", groupId: "test" },
      outcome: { success: true, checker: "exit-code", answer: "42" },
      provenance: { kind: "recorded", model: "m-1", simulated: false },
    });
    expect(made.steps).toMatchObject([
      { index: 0, agent: "planner", kind: "message", content: "Count them.", callIds: ["0"] },
      { index: 1, agent: "solver", content: "7", callIds: ["1"], usage: { promptTokens: 10, completionTokens: 2 } },
    ]);
    expect(made.steps[1]).toMatchObject({ startedAt: "2025-01-01T00:00:00.010Z", endedAt: "2025-01-01T00:00:00.015Z" });
  });

  it("takes task, system and the checker's verdict from whoever knows them", () => {
    const task = { id: "t", text: "x", source: "gsm8k", groupId: "g" };
    const outcome = { success: false, checker: "numeric" };
    expect(trajectory([{ says: "x" }], { task, system: "mine", outcome })).toMatchObject({
      task,
      system: "mine",
      outcome,
    });
  });

  it("says that an interrupted recording is no success", () => {
    const made = trajectoryFromTape(taped([{ says: "x" }], { ended: false }));
    expect(made.outcome).toMatchObject({ success: false, detail: "the recording was interrupted" });
  });

  it("leaves out embeddings, lists of models, retried attempts and failures; aborted and refused calls are marked", () => {
    const messages = [user("again")];
    const made = trajectory([
      { endpoint: "models", answer: "{}" },
      { endpoint: "embeddings", request: { input: "x" }, answer: '{"data":[]}' },
      { messages, status: 429, answer: "{}" },
      { messages, says: "second try" },
      { messages: [user("gone")], status: 503, answer: "{}" },
      {
        messages: [user("stream")],
        outcome: "aborted",
        answer: 'data: {"choices":[{"index":0,"delta":{"content":"so f"}}]}\n\n',
      },
      { messages: [user("too long")], status: 400, answer: '{"error":{"message":"context length"}}' },
      { messages: [user("changed")], from: "action", says: "corrected" },
    ]);
    expect(made.steps.map(({ content, callIds, extra }) => [content, callIds, extra])).toEqual([
      ["second try", ["1"], undefined],
      ["so f", ["2"], { brokenCalls: [{ call: 2, outcome: "aborted", status: 200 }] }],
      ["", ["3"], { brokenCalls: [{ call: 3, outcome: "complete", status: 400, error: "context length" }] }],
      ["corrected", ["4"], { replacedCalls: [4] }],
    ]);
    expect(made.provenance.extra).toMatchObject({ failedCalls: 1, callsOutsideSteps: 0 });
  });

  it("never takes a prompt for a step, not even where an answer repeats it", () => {
    const request = { model: "m", prompt: "Once upon", echo: true };
    const answer = JSON.stringify({ choices: [{ index: 0, text: "Once upon a time" }] });
    const quoted = [user("q"), { role: "assistant", content: "said before" }, user("go on")];
    expect(
      steps([
        { endpoint: "completions", request, answer },
        { messages: quoted, says: "more" },
      ]).map(({ content }) => content),
    ).toEqual(["a time", "more"]);
  });

  it("orders what ran side by side by when it was answered; of two at once that which was asked first", () => {
    const made = steps([
      { lane: "slow", says: "0", asked: 0, took: 100 },
      { lane: "quick", says: "1", asked: 5, took: 10 },
      { lane: "second", says: "2", asked: 20, took: 80 },
      { lane: "last", says: "3", asked: 50, took: 200 },
    ]);
    expect(made.map(({ agent, callIds }) => [agent, callIds])).toEqual([
      ["quick", ["1"]],
      ["slow", ["0"]],
      ["second", ["2"]],
      ["last", ["3"]],
    ]);
  });

  it("is refused where nobody said anything", () => {
    const empty = taped([{ status: 503, answer: "{}" }]);
    expect(() => trajectoryFromTape(empty)).toThrow(/no answer of an agent/u);
  });
});

describe("the step policies", () => {
  const run: readonly Call[] = [
    { lane: "searcher", calls: [["c1", "search", '{"q":"a"}']] },
    {
      lane: "searcher",
      messages: [user("q"), called("c1", "search", '{"q":"a"}'), tool("c1", "found")],
      says: "It is a.",
    },
    { lane: "writer", says: "Draft." },
    { lane: "searcher", says: "Checked." },
  ];

  it("per-agent-turn joins an agent's calls up to its hand-over", () => {
    const made = trajectory(run, perTurn);
    expect(made.stepPolicy).toBe("per-agent-turn");
    expect(made.steps).toMatchObject([
      {
        agent: "searcher",
        content: "It is a.",
        callIds: ["0", "1"],
        toolCalls: [{ id: "c1", name: "search", arguments: '{"q":"a"}', result: "found" }],
        usage: { promptTokens: 20, completionTokens: 4 },
        startedAt: "2025-01-01T00:00:00.000Z",
        endedAt: "2025-01-01T00:00:00.015Z",
      },
      { agent: "writer", callIds: ["2"] },
      { agent: "searcher", callIds: ["3"] },
    ]);
  });

  it.each(stepPolicies)("$id puts every call into one step, in order, the same each time", (policy) => {
    const made = steps(run, { policy });
    expect(made.flatMap(({ callIds }) => callIds)).toEqual(["0", "1", "2", "3"]);
    expect(steps(run, { policy })).toEqual(made);
  });

  it("an adapter may bring its own, after its framework's log", () => {
    const log = [
      { agent: "Searcher", call: 1, role: "tool user", text: "what the log says" },
      { agent: "Writer", call: 2 },
    ];
    const policy: StepPolicy = {
      id: "my-log",
      title: "as the framework's log has it",
      steps: ({ calls }) =>
        log.map(({ agent, call, role, text }) => ({
          agent,
          calls: calls.filter(({ number }) => number === call),
          ...(role === undefined ? {} : { role }),
          ...(text === undefined ? {} : { content: text }),
        })),
    };
    const made = trajectory(run, { policy });
    expect(made.stepPolicy).toBe("my-log");
    expect(made.steps).toMatchObject([
      { agent: "Searcher", role: "tool user", content: "what the log says", callIds: ["1"] },
      { agent: "Writer", content: "Draft.", callIds: ["2"] },
    ]);
    expect(made.provenance.extra).toMatchObject({ callsOutsideSteps: 2 });
  });

  it("one that uses a call twice, or makes a step of nobody, is a fault of ours", () => {
    const twice: StepPolicy = { id: "t", title: "", steps: ({ calls }) => [0, 1].map(() => ({ agent: "a", calls })) };
    const nobody: StepPolicy = { id: "n", title: "", steps: ({ calls }) => [{ agent: " ", calls }] };
    const empty: StepPolicy = { id: "e", title: "", steps: () => [{ agent: "a", calls: [] }] };
    expect(() => steps(run, { policy: twice })).toThrow(/call 0 into two steps/u);
    for (const policy of [nobody, empty]) expect(() => steps(run, { policy })).toThrow(/without an agent or a call/u);
    expect(() => stepPolicyById("none")).toThrow(/per-call, per-agent-turn/u);
  });
});

describe("results of tools", () => {
  const results = (calls: readonly Call[]) =>
    steps(calls).map(({ toolCalls }) => toolCalls.map(({ result }) => result));

  it("are found in later requests and attached once, errors and empty ones too", () => {
    expect(
      results([
        {
          calls: [
            ["c1", "f", "{}"],
            ["c2", "g", "{}"],
            ["c3", "h", "{}"],
          ],
        },
        { messages: [user("q"), called("c1", "f", "{}"), tool("c1", "one"), tool("c2", "")], says: "next" },
        { messages: [user("q"), called("c1", "f", "{}"), tool("c1", "changed later"), tool("c2", "")], says: "end" },
      ]),
    ).toEqual([["one", "", undefined], [], []]);
  });

  it("come from parts of a message, from Responses, and from another agent's request", () => {
    const parts = [
      { type: "text", text: "in " },
      { type: "text", text: "parts" },
    ];
    const output = { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: '{"a":1}' };
    const responses = JSON.stringify({ model: "m", output: [output] });
    const input = [
      { role: "user", content: "q" },
      output,
      { type: "function_call_output", call_id: "call_1", output: "ok" },
    ];
    const made = steps([
      { calls: [["c1", "f", "{}"]] },
      { messages: [user("q"), { role: "tool", tool_call_id: "c1", content: parts }], says: "x" },
      { endpoint: "responses", request: { input: "q" }, answer: responses },
      { endpoint: "responses", request: { input }, answer: '{"output":[]}', lane: "b" },
    ]);
    expect(made[0]?.toolCalls[0]?.result).toBe("in parts");
    expect(made[2]?.toolCalls).toEqual([{ id: "call_1", name: "f", arguments: '{"a":1}', result: "ok" }]);
  });

  it("of streamed calls too: ids come in the first piece, Responses tell an item more than once", () => {
    const chat = [
      { index: 0, id: "c9", function: { name: "f", arguments: "" } },
      { index: 0, function: { arguments: '{"a"' } },
      { index: 0, function: { arguments: ":1}" } },
    ].map((call) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })}\n\n`);
    const item = { type: "function_call", call_id: "c8", name: "g", arguments: "{}" };
    const events = ["response.in_progress", "response.completed"].map(
      (type) => `event: ${type}\ndata: ${JSON.stringify({ type, response: { output: [item] } })}\n\n`,
    );
    expect(
      steps([{ answer: chat.join("") }, { endpoint: "responses", request: {}, answer: events.join("") }]).map(
        ({ toolCalls }) => toolCalls,
      ),
    ).toEqual([[{ id: "c9", name: "f", arguments: '{"a":1}' }], [{ id: "c8", name: "g", arguments: "{}" }]]);
  });

  it("find their call though ids repeat: by place in the conversation, by what is quoted", () => {
    const first = [user("q"), called("call_0", "f", '{"n":1}'), tool("call_0", "r1")];
    const second = [...first, called("call_0", "f", '{"n": 2}'), tool("call_0", "r2")];
    expect(
      results([
        { calls: [["call_0", "f", '{"n":1}']] },
        { messages: first, calls: [["call_0", "f", '{"n":2}']] },
        { messages: second, calls: [["call_0", "f", '{"n":3}']] },
        // History cut short: only the last is left.
        { messages: [user("q"), called("call_0", "f", '{"n":3}'), tool("call_0", "r3")], says: "done" },
      ]),
    ).toEqual([["r1"], ["r2"], ["r3"], []]);
    // Two agents with the same id: each has its own.
    expect(
      results([
        { lane: "a", calls: [["call_0", "f", "{}"]] },
        { lane: "b", calls: [["call_0", "f", "{}"]] },
        { lane: "a", messages: [user("q"), tool("call_0", "for a")], says: "x" },
        { lane: "b", messages: [user("q"), tool("call_0", "for b")], says: "y" },
      ]),
    ).toEqual([["for a"], ["for b"], [], []]);
  });

  it("are not those of a call that was answered later", () => {
    expect(
      results([
        { messages: [user("q"), tool("c1", "from before the recording")], says: "x" },
        { calls: [["c1", "f", "{}"]] },
      ]),
    ).toEqual([[], [undefined]]);
  });
});

describe("names of agents", () => {
  const prompted = (lane: string, ...messages: Message[]): Call => ({ lane, laneBy: "prompt", messages, says: "x" });
  const names = (...calls: Call[]): string[] => steps(calls).map(({ agent }) => agent);

  it("are those of URL and key, else what the prompt says", () => {
    expect(
      names(
        { lane: "planner", says: "x" },
        { lane: "solver", laneBy: "key", says: "x" },
        prompted("prompt-1", system("You are a Product Manager, named Alice, your goal is to sell.")),
        prompted("prompt-2", system("You are Senior Researcher. You're an expert at search.")),
        prompted("prompt-3", system("x"), user("You're a helpful agent named 'search_agent'.")),
        prompted("prompt-4", system("You are a careful code reviewer who never sleeps")),
        prompted("prompt-5", system("Answer in French.")),
        { lane: "agent", laneBy: "unnamed", says: "x" },
      ),
    ).toEqual([
      "planner",
      "solver",
      "Alice",
      "Senior Researcher",
      "search_agent",
      "careful code reviewer",
      "prompt-5",
      "agent",
    ]);
  });

  it("keep lanes apart that share a role, and join those that share a name", () => {
    const assistant = (n: number) => system(`You are a helpful assistant. Part ${n}.`);
    const bob = (n: number) => system(`Your name is Bob. Part ${n}.`);
    const made = trajectory([
      prompted("prompt-1", assistant(1)),
      prompted("prompt-2", assistant(2)),
      prompted("prompt-1", assistant(1), user("again")),
      prompted("prompt-3", bob(1)),
      prompted("prompt-4", bob(2)),
    ]);
    expect(made.steps.map(({ agent }) => agent)).toEqual([
      "helpful assistant",
      "helpful assistant 2",
      "helpful assistant",
      "Bob",
      "Bob",
    ]);
    expect(made.provenance.extra).toMatchObject({
      lanes: { "helpful assistant": ["prompt-1"], "helpful assistant 2": ["prompt-2"], Bob: ["prompt-3", "prompt-4"] },
    });
  });

  it("may be an adapter's", () => {
    const nameAgent = ({ lane }: { lane: string }) => (lane === "prompt-1" ? "Orchestrator" : undefined);
    const calls = [prompted("prompt-1", system("You are Bob.")), prompted("prompt-2", system("You are Eve."))];
    expect(steps(calls, { nameAgent }).map(({ agent }) => agent)).toEqual(["Orchestrator", "Eve"]);
  });
});

describe("a cut at a step", () => {
  const cuts = (calls: readonly Call[], options: TapeTrajectoryOptions = {}) => {
    const tape = taped(calls);
    const made = trajectoryFromTape(tape, options);
    const { calls: recordings } = recordingsOf(tape);
    const shown = ({ at, prefix }: ReturnType<typeof cutAtStep>) => [at, [...prefix].sort()];
    return {
      at: (step: number) => shown(cutAtStep(made, step, recordings)),
      upTo: (step: number) => shown(cutAfterStep(made, step, recordings)),
    };
  };

  it("is the cut at its call where calls follow one another", () => {
    const { at, upTo } = cuts([{ says: "0" }, { says: "1" }, { says: "2" }]);
    expect([0, 1, 2].map(at)).toEqual([
      [0, []],
      [1, [0]],
      [2, [0, 1]],
    ]);
    expect([0, 1, 2].map(upTo)).toEqual([
      [1, [0]],
      [2, [0, 1]],
      [3, [0, 1, 2]],
    ]);
    expect(() => at(3)).toThrow(/steps 0 to 2/u);
  });

  it("of several calls is at the first of them", () => {
    const calls = [
      { lane: "a", says: "0" },
      { lane: "b", says: "1" },
      { lane: "b", says: "2" },
      { lane: "a", says: "3" },
    ];
    const { at, upTo } = cuts(calls, perTurn);
    expect(at(1)).toEqual([1, [0]]);
    expect(upTo(1)).toEqual([3, [0, 1, 2]]);
  });

  it("among agents that run side by side keeps what was answered before it, whenever it was asked", () => {
    // Step 0 is call 1 (quick), step 1 call 0 (slow), step 2 call 2.
    const { at, upTo } = cuts([
      { lane: "slow", says: "0", asked: 0, took: 100 },
      { lane: "quick", says: "1", asked: 5, took: 10 },
      { lane: "end", says: "2", asked: 200 },
    ]);
    expect(at(0)).toEqual([1, []]); // the slow call is live: it had not been answered
    expect(at(1)).toEqual([0, [1]]);
    expect(upTo(0)).toEqual([0, [1]]);
    expect(upTo(1)).toEqual([2, [0, 1]]);
  });

  it("keeps the embeddings that came before it", () => {
    const embedding: Call = { endpoint: "embeddings", request: { input: "x" }, answer: "{}" };
    const { at, upTo } = cuts([embedding, { says: "1" }, { ...embedding, request: { input: "y" } }, { says: "3" }]);
    expect(at(0)).toEqual([1, [0]]);
    expect(at(1)).toEqual([3, [0, 1, 2]]);
    expect(upTo(0)).toEqual([3, [0, 1, 2]]);
    expect(upTo(1)).toEqual([4, [0, 1, 2, 3]]);
  });
});
