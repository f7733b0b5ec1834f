"""A CAMEL Workforce works a word problem: the planner splits it into tasks, the coordinator hands them to workers by id."""
import logging

import rootstep_program as rootstep
from camel.agents import ChatAgent
from camel.messages import BaseMessage
from camel.models import ModelFactory
from camel.societies.workforce import Workforce
from camel.tasks import Task
from camel.types import ModelPlatformType
from camel.utils import BaseTokenCounter

logging.disable(logging.WARNING)

PLANNER = """
As the planner you name all calculations at once: one task for each, its text being just the line `Plan N: A op B`
(the last one with ` (last)`), in the order in which they are to be carried out. After them comes one more task, whose
text is `State the final answer.`"""

COORDINATOR = """You are the coordinator of a team that solves a word problem one calculation at a time.
A task `Plan N: …` goes to the solver, `State the final answer.` to the verifier. Each task depends on all tasks before it."""


class CharactersByFour(BaseTokenCounter):
    """A rule of thumb in place of tiktoken, which would fetch its ranks from the network."""

    def count_tokens_from_messages(self, messages):
        return sum(len(str(message.get("content"))) for message in messages) // 4

    def encode(self, text):
        return [ord(character) for character in text[::4]]

    def decode(self, token_ids):
        return "".join(chr(token) for token in token_ids)


def agent(name, instructions):
    model = ModelFactory.create(
        model_platform=ModelPlatformType.OPENAI_COMPATIBLE_MODEL,
        model_type=rootstep.model(),
        url=rootstep.base_url(name),
        api_key=rootstep.api_key(),
        token_counter=CharactersByFour(),
    )
    return ChatAgent(BaseMessage.make_assistant_message(role_name=name, content=instructions), model=model)


workforce = Workforce(
    "A team for word problems",
    coordinator_agent=agent("coordinator", COORDINATOR),
    task_agent=agent("planner", rootstep.instructions("planner") + "\n" + PLANNER),
    # What a worker is made from where the coordinator finds none that fits; CAMEL's own would ask another model.
    new_worker_agent=agent("solver", rootstep.instructions("solver")),
    graceful_shutdown_timeout=0,
)
workforce.add_single_agent_worker("The solver: carries out one calculation.", agent("solver", rootstep.instructions("solver")))
workforce.add_single_agent_worker("The verifier: states the final answer.", agent("verifier", rootstep.instructions("verifier")))

rootstep.answer(workforce.process_task(Task(content=rootstep.problem(), id="0")).result)
