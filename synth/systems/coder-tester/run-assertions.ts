import type { Sandbox } from "../../sandbox/sandbox.ts";
import { pythonIn } from "../../tasks/code-answer.ts";

const MOST_ASSERTIONS = 8;
const SHOWN = 200;

const RUNNER = `
import contextlib, io, sys
sink = io.StringIO()
namespace = {"__name__": "candidate"}
def read(name):
    with open("/".join(__file__.split("/")[:-1]) + "/" + name) as file:
        return file.read()
def describe(error):
    return type(error).__name__ + (": " + str(error) if str(error) else "")
try:
    with contextlib.redirect_stdout(sink):
        exec(compile(read("candidate.txt"), "candidate.py", "exec"), namespace)
except BaseException as error:
    print("the code does not run:", describe(error))
    sys.exit()
for line in read("assertions.txt").splitlines():
    try:
        with contextlib.redirect_stdout(sink):
            exec(line, dict(namespace))
        print("holds")
    except AssertionError:
        print("fails")
    except BaseException as error:
        print("raises", describe(error).replace("\\n", " ")[:100])
`;

/** What the world says about the tester's assertions on the coder's function, one sentence per assertion that does not hold. */
export async function runAssertions(
  coder: string,
  tester: string,
  sandbox: Sandbox,
  signal?: AbortSignal,
): Promise<string> {
  const assertions = pythonIn(tester)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line.startsWith("assert "))
    .slice(0, MOST_ASSERTIONS);
  if (assertions.length === 0) return "no assertions were given.";
  const files = { "main.py": RUNNER, "candidate.txt": pythonIn(coder), "assertions.txt": assertions.join("\n") };
  const result = await sandbox.run({ files }, signal);
  // Agents read this, so it must not tell a busy machine from an idle one.
  if (result.ended !== "exited")
    return `the code was stopped: it ${result.ended === "output" ? "wrote too much" : "ran too long"}.`;
  const verdicts = result.stdout.split("\n").filter((line) => line !== "");
  if (verdicts[0]?.startsWith("the code does not run") === true) return `${verdicts[0].slice(0, SHOWN)}.`;
  const broken = assertions.flatMap((assertion, at) => {
    const verdict = verdicts[at] ?? "was not reached";
    return verdict === "holds" ? [] : [`\`${assertion}\` ${verdict}.`];
  });
  if (broken.length === 0) return `all ${assertions.length} assertions hold.`;
  return `${broken.length} of ${assertions.length} assertions do not hold: ${broken.join(" ")}`;
}
