"""LangGraph: planner, solver and verifier as nodes of a graph with a loop, or (`supervisor`) as agents of a
langgraph-supervisor that hands the conversation to one of them at a time."""
import sys
import warnings

import rootstep_program as rootstep
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

ROLES = ("planner", "solver", "verifier")
SUPERVISE = """You supervise a team of planner, solver and verifier that solves a word problem one calculation at a time. You hand the conversation to one of them at a time and calculate nothing yourself: to the planner at the start and after each calculation, to the solver after each plan, to the verifier once the calculation marked (last) is carried out. When the verifier has stated the final answer, repeat it."""


def model(agent):
    return ChatOpenAI(model=rootstep.model(), base_url=rootstep.base_url(agent), api_key=rootstep.api_key())


def graph():
    def node(role):
        chat = model(role)

        def speak(state):
            answer = chat.invoke([SystemMessage(rootstep.instructions(role)), *state["messages"]])
            answer.name = role
            return {"messages": [answer]}

        return speak

    def after_solver(state):
        plans = [message.content for message in state["messages"] if message.name == "planner"]
        return "verifier" if plans[-1].rstrip(". \n").endswith("(last)") else "planner"

    team = StateGraph(MessagesState)
    for role in ROLES:
        team.add_node(role, node(role))
    team.add_edge(START, "planner")
    team.add_edge("planner", "solver")
    team.add_conditional_edges("solver", after_solver, ["planner", "verifier"])
    team.add_edge("verifier", END)
    return team.compile()


def supervised():
    from langgraph_supervisor import create_supervisor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # langgraph-supervisor's own agents are built with it too
        from langgraph.prebuilt import create_react_agent

        agents = [
            create_react_agent(model(role), tools=[], name=role, prompt=rootstep.instructions(role)) for role in ROLES
        ]
        return create_supervisor(agents, model=model("supervisor"), prompt=SUPERVISE).compile()


team = supervised() if sys.argv[1:] == ["supervisor"] else graph()
end = team.invoke({"messages": [HumanMessage(rootstep.problem())]}, {"recursion_limit": 100})
rootstep.answer(end["messages"][-1].content)
