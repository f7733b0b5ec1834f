"""
Runs AgentPrune's graph of the user's checkout on one problem: four solvers that see each other's answers, then a decision.

Topology and rounds: ROOTSTEP_AGENTPRUNE_MODE (FullConnected, Chain, Star, Debate; default FullConnected) and
ROOTSTEP_AGENTPRUNE_ROUNDS (default 1). With a pruned graph of your own, set its 0/1 matrix as JSON in
ROOTSTEP_AGENTPRUNE_SPATIAL.
"""
import asyncio
import json
import os
import sys

import rootstep_program as rootstep

# The checkout reads these as it is imported; its own .env does not overrule them.
os.environ["BASE_URL"] = os.environ["OPENAI_BASE_URL"]
os.environ["API_KEY"] = rootstep.api_key()
sys.path.insert(0, os.environ["ROOTSTEP_AGENTPRUNE"])

from openai import AsyncOpenAI  # noqa: E402
from AgentPrune.agents import AgentRegistry  # noqa: E402, F401 (registers the agents)
from AgentPrune.graph.graph import Graph  # noqa: E402
from AgentPrune.llm.gpt_chat import GPTChat  # noqa: E402

AGENTS = 4


def spatial():
    given = os.environ.get("ROOTSTEP_AGENTPRUNE_SPATIAL")
    mode = os.environ.get("ROOTSTEP_AGENTPRUNE_MODE", "FullConnected")
    edges = {
        "FullConnected": lambda i, j: i != j,
        "Chain": lambda i, j: j == i + 1,
        "Star": lambda i, j: j > i,
        "Debate": lambda i, j: False,
    }
    return json.loads(given) if given else [[int(edges[mode](i, j)) for j in range(AGENTS)] for i in range(AGENTS)]


class OneAgent(GPTChat):
    """The checkout asks all models at one URL: here each agent has its own, by which its calls are told apart."""

    def __init__(self, model_name, lane):
        super().__init__(model_name)
        self.lane = lane

    async def agen(self, messages, max_tokens=None, temperature=None, num_comps=None):
        client = AsyncOpenAI(base_url=rootstep.base_url(self.lane), api_key=rootstep.api_key())
        answer = await client.chat.completions.create(messages=messages, model=self.model_name)
        return answer.choices[0].message.content


def lane_of(role):
    return role.lower().replace(" ", "-")


graph = Graph(
    domain="gsm8k",
    llm_name=rootstep.model(),
    agent_names=["MathSolver"] * AGENTS,
    decision_method="FinalRefer",
    fixed_spatial_masks=spatial(),
    fixed_temporal_masks=[[1] * AGENTS for _ in range(AGENTS)],
)
for node in graph.nodes.values():
    node.llm = OneAgent(rootstep.model(), lane_of(node.role))
graph.decision_node.llm = OneAgent(rootstep.model(), "decision")

problem = rootstep.task()["text"].strip()
answers, _ = asyncio.run(graph.arun({"task": problem}, int(os.environ.get("ROOTSTEP_AGENTPRUNE_ROUNDS", "1"))))
rootstep.answer(answers[0])
