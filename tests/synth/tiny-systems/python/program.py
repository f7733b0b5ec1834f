import json
import urllib.request

import rootstep_program as rootstep

messages = [
    {"role": "system", "content": rootstep.instructions("planner")},
    {"role": "user", "content": rootstep.problem()},
]
request = urllib.request.Request(
    rootstep.base_url("solver") + "/chat/completions",
    data=json.dumps({"model": rootstep.model(), "messages": messages}).encode(),
    headers={"Authorization": "Bearer " + rootstep.api_key()},
)
with urllib.request.urlopen(request) as response:
    rootstep.answer(json.load(response)["choices"][0]["message"]["content"])
