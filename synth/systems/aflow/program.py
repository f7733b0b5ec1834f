"""
Runs one AFlow workflow of the user's checkout on one problem, with a lane for each of its operators.

Which workflow: ROOTSTEP_AFLOW_WORKFLOW, a module of the checkout such as `workspace.GSM8K.workflows.round_1.graph`;
without it, the team below, made of the checkout's own operators.
"""
import asyncio
import importlib
import os
import random
import sys

import rootstep_program as rootstep

sys.path.insert(0, os.environ["ROOTSTEP_AFLOW"])

import numpy  # noqa: E402
from scripts.async_llm import AsyncLLM, LLMConfig  # noqa: E402
from scripts.operators import Custom, Operator, ScEnsemble  # noqa: E402

# MdEnsemble shuffles what it shows, and no mask could put it in order again. The preload doesn't reach numpy.
random.seed(0)
numpy.random.seed(0)

CALCULATIONS = 16
VOTES = 3


def settings(lane):
    return LLMConfig(
        {"model": rootstep.model(), "key": rootstep.api_key(), "base_url": rootstep.base_url(lane), "temperature": 0}
    )


class Team:
    """Planner and solver take turns, the verifier is asked three times, and the answer given most often is taken."""

    def __init__(self):
        self.planner = Custom(None)
        self.solver = Custom(None)
        self.verifier = Custom(None)
        self.ensemble = ScEnsemble(None)

    async def __call__(self, problem):
        said = [problem]

        async def ask(operator, role):
            shown = "\n\n".join(said)
            answered = await operator(input=shown, instruction=rootstep.instructions(role) + "\n\n")
            return answered["response"].strip()

        for _ in range(CALCULATIONS):
            said.append(await ask(self.planner, "planner"))
            said.append(await ask(self.solver, "solver"))
            if said[-2].endswith("(last)"):
                break
        votes = [await ask(self.verifier, "verifier") for _ in range(VOTES)]
        return (await self.ensemble(solutions=votes, problem=problem))["response"], 0.0


def workflow():
    module = os.environ.get("ROOTSTEP_AFLOW_WORKFLOW")
    if not module:
        return Team()
    return importlib.import_module(module).Workflow(name="rootstep", llm_config=settings("workflow"), dataset="GSM8K")


graph = workflow()
for name, operator in vars(graph).items():
    if isinstance(operator, Operator):
        operator.llm = AsyncLLM(settings(name))
answer, _ = asyncio.run(graph(rootstep.problem()))
rootstep.answer(str(answer))
