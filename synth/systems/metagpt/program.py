"""A MetaGPT team works a word problem: planner and solver take turns, the verifier answers after the last calculation."""
import asyncio
import os
from pathlib import Path

import rootstep_program as rootstep


def llm(agent):
    return {
        "api_type": "openai",
        "base_url": rootstep.base_url(agent),
        "api_key": rootstep.api_key(),
        "model": rootstep.model(),
        "calc_usage": False,  # counting would fetch tiktoken's ranks from the network
    }


# MetaGPT reads its configuration while it is imported: this run's HOME gets one, its own files go to the working folder.
os.environ["METAGPT_PROJECT_ROOT"] = os.getcwd()
configuration = Path.home() / ".metagpt" / "config2.yaml"
configuration.parent.mkdir(parents=True)
configuration.write_text('llm: {api_type: "openai", api_key: "unused", base_url: "http://127.0.0.1:9/v1"}\n')

from metagpt.actions import Action, UserRequirement  # noqa: E402
from metagpt.config2 import Config  # noqa: E402
from metagpt.roles.role import Role  # noqa: E402
from metagpt.schema import Message  # noqa: E402
from metagpt.team import Team  # noqa: E402


class Speak(Action):
    """Says the role's next line, shown what the team has said so far."""

    async def run(self, messages):
        return await self._aask("\n\n".join(message.content for message in messages))


class NameCalculation(Speak):
    """What the planner does."""


class CarryOut(Speak):
    """What the solver does."""


class CarryOutLast(CarryOut):
    """What it has done when the plan said that no other follows."""


class StateAnswer(Speak):
    """What the verifier does."""


class Speaker(Role):
    def __init__(self, agent, action, watched):
        config = Config.from_llm_config(llm(agent))
        super().__init__(name=agent, profile=agent, desc=rootstep.instructions(agent), config=config)
        self.set_actions([action])
        self._watch(watched)

    async def _act(self):
        messages = self.get_memories()
        line = (await self.rc.todo.run(messages)).strip()
        done = type(self.rc.todo)
        if done is CarryOut and messages[-1].content.endswith("(last)"):
            done = CarryOutLast
        return Message(content=line, role=self.profile, cause_by=done, sent_from=self)


async def main():
    team = Team(use_mgx=False)
    team.hire(
        [
            Speaker("planner", NameCalculation, [UserRequirement, CarryOut]),
            Speaker("solver", CarryOut, [NameCalculation]),
            Speaker("verifier", StateAnswer, [CarryOutLast]),
        ]
    )
    team.run_project(rootstep.problem())
    await team.run(n_round=40, auto_archive=False)
    rootstep.answer(team.env.history.strip().splitlines()[-1])


asyncio.run(main())
