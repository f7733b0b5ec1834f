"""smolagents: a manager (ToolCallingAgent) that plans, and two managed agents: a solver that writes code (CodeAgent) and a
verifier (ToolCallingAgent)."""
import rootstep_program as rootstep
from smolagents import CodeAgent, LogLevel, OpenAIServerModel, ToolCallingAgent

HAND_OVER = """
You say your line by giving it to the team member `solver` as the end of its task, after the problem and everything that the team has said so far. When the calculation marked `(last)` is carried out, give the problem and everything said to the team member `verifier`, and then return the value that it states with `final_answer`."""
BY_CODE = "Say your line by calling final_answer with it, as a string, in your code."
BY_TOOL = "Say your line by calling the tool final_answer with it."


def model(agent):
    return OpenAIServerModel(
        model_id=rootstep.model(), api_base=rootstep.base_url(agent), api_key=rootstep.api_key()
    )


solver = CodeAgent(
    tools=[],
    model=model("solver"),
    name="solver",
    description="Carries out the calculation that its task ends with.",
    instructions=f"{rootstep.instructions('solver')}\n\n{BY_CODE}",
    max_steps=3,
    verbosity_level=LogLevel.OFF,
)
verifier = ToolCallingAgent(
    tools=[],
    model=model("verifier"),
    name="verifier",
    description="States the value that the team has reached.",
    instructions=f"{rootstep.instructions('verifier')}\n\n{BY_TOOL}",
    max_steps=3,
    verbosity_level=LogLevel.OFF,
)
manager = ToolCallingAgent(
    tools=[],
    model=model("manager"),
    managed_agents=[solver, verifier],
    instructions=f"{rootstep.instructions('planner')}\n{HAND_OVER}",
    max_steps=40,
    verbosity_level=LogLevel.OFF,
)

rootstep.answer(str(manager.run(rootstep.problem())))
