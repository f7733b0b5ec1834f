"""An AutoGen group chat of planner, solver and verifier. The first argument chooses who says whose turn it is: `selector`
(a model is asked each time) or `round-robin`."""
import asyncio
import sys

import rootstep_program as rootstep
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat
from autogen_core.models import ModelFamily
from autogen_ext.models.openai import OpenAIChatCompletionClient

DESCRIPTIONS = {
    "planner": "names the next calculation",
    "solver": "carries out the planner's calculation",
    "verifier": "states the final answer once the last calculation is carried out",
}


def client(agent):
    return OpenAIChatCompletionClient(
        model=rootstep.model(),
        base_url=rootstep.base_url(agent),
        api_key=rootstep.api_key(),
        model_info={
            "vision": False,
            "function_calling": True,
            "json_output": False,
            "structured_output": False,
            "family": ModelFamily.UNKNOWN,
        },
    )


async def main(kind):
    agents = [
        AssistantAgent(name, client(name), description=about, system_message=rootstep.instructions(name))
        for name, about in DESCRIPTIONS.items()
    ]
    done = TextMentionTermination("final answer is", sources=["verifier"]) | MaxMessageTermination(60)
    if kind == "selector":
        team = SelectorGroupChat(agents, model_client=client("selector"), termination_condition=done)
    else:
        team = RoundRobinGroupChat(agents, termination_condition=done)
    result = await team.run(task=rootstep.problem())
    rootstep.answer(result.messages[-1].content)


asyncio.run(main(sys.argv[1]))
