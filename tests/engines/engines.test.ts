// One file, for the suites share their servers: some change the weights that others sample from, so they run in turn.
import "./vllm.suite.ts";
import "./skyrl.suite.ts";
import "./grpo.suite.ts";
import "./ray.suite.ts";
import "./verl-parquet.suite.ts";
import "./eval-vllm.suite.ts";
import "./dataset-parquet.suite.ts";
// Stops and kills the servers.
import "./faults.suite.ts";
