"""A CrewAI crew works a word problem: a plan, its working on a shared board, two checks side by side, the answer."""
import rootstep_program as rootstep
from crewai import LLM, Agent, Crew, Process, Task
from crewai.tools import tool

board = []


@tool("write_on_board")
def write_on_board(line: str) -> str:
    """Writes one line of working on the team's board and shows the board."""
    board.append(line)
    return "\n".join(board)


def agent(role, instructions, goal, tools=()):
    return Agent(
        role=role,
        goal=goal,
        backstory=instructions,
        tools=list(tools),
        llm=LLM(model=f"openai/{rootstep.model()}", base_url=rootstep.base_url(role), api_key=rootstep.api_key()),
        allow_delegation=False,
    )


def task(demand, expected_output, worker, context=(), side_by_side=False):
    return Task(
        description=f"{rootstep.problem()}\n\n{demand}",
        expected_output=expected_output,
        agent=worker,
        context=list(context),
        async_execution=side_by_side,
    )


verify = rootstep.instructions("verifier")
planner = agent("planner", rootstep.instructions("planner"), "Name all calculations, a line for each, the last one with ` (last)`.")
solver = agent(
    "solver",
    rootstep.instructions("solver"),
    "Carry out the plan from its first line to its last, writing each `A op B = C` on the board before you go on.",
    tools=[write_on_board],
)
checker = agent("checker", verify, "State the current value after a look at the plan and the board.")
auditor = agent("auditor", verify, "State the current value after a look at the board alone.")
verifier = agent("verifier", verify, "State the final answer.")

plan = task("Name all calculations.", "The lines `Plan N: A op B`.", planner)
working = task("Carry out the plan.", "The lines of the board.", solver, [plan])
# A crew runs at most one task at a time of an agent, so the two that run side by side have an agent each.
check = task("State the current value.", "One line.", checker, [plan, working], side_by_side=True)
audit = task("State the current value.", "One line.", auditor, [working], side_by_side=True)
verdict = task("State the final answer.", "One line.", verifier, [check, audit])

crew = Crew(
    agents=[planner, solver, checker, auditor, verifier],
    tasks=[plan, working, check, audit, verdict],
    process=Process.sequential,
)
rootstep.answer(crew.kickoff().raw)
