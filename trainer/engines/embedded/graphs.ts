import { InferenceSession, Tensor } from "onnxruntime-node";
import { RootstepError } from "../../../src/errors.ts";
import { type EmbeddedManifest, type GraphName, readVerified } from "./manifest.ts";

/** Runs the engine's ONNX graphs. Sessions are made when first needed: an evaluation never loads the training graphs. */
export interface Graphs {
  run(graph: GraphName, feeds: Readonly<Record<string, Tensor>>): Promise<Outputs>;
  release(): Promise<void>;
}

/** Outputs of a graph by name, all float32. */
export type Outputs = (name: string) => Float32Array;

/**
 * @param threads threads inside one operator. They never spin: idle spinning threads slow everything on a busy machine.
 */
export function openGraphs(folder: string, manifest: EmbeddedManifest, threads: number): Graphs {
  const sessions = new Map<GraphName, Promise<InferenceSession>>();

  const create = async (graph: GraphName): Promise<InferenceSession> => {
    const model = await readVerified(folder, manifest.graphs[graph]);
    return InferenceSession.create(model, {
      executionProviders: ["cpu"],
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      executionMode: "sequential",
      graphOptimizationLevel: "all",
      enableMemPattern: false,
      logSeverityLevel: 3,
      extra: { session: { intra_op: { allow_spinning: "0" } } },
    });
  };

  const session = (graph: GraphName): Promise<InferenceSession> => {
    const known = sessions.get(graph);
    if (known !== undefined) return known;
    const created = create(graph);
    sessions.set(graph, created);
    return created;
  };

  return {
    run: async (graph, feeds) => {
      const runner = await session(graph);
      try {
        const outputs = await runner.run(feeds);
        return (name) => float32(graph, name, outputs[name]);
      } catch (cause) {
        throw new RootstepError("ENGINE_FAILED", { what: "onnxruntime could not run a graph", where: graph, cause });
      }
    },
    release: async () => {
      const open = await Promise.allSettled(sessions.values());
      sessions.clear();
      await Promise.all(open.map((result) => (result.status === "fulfilled" ? result.value.release() : undefined)));
    },
  };
}

export function floats(data: Float32Array, dims: readonly number[]): Tensor {
  return new Tensor("float32", data, dims);
}

export function integers(data: Int32Array, dims: readonly number[]): Tensor {
  return new Tensor("int32", data, dims);
}

function float32(graph: GraphName, name: string, tensor: Tensor | undefined): Float32Array {
  if (tensor?.data instanceof Float32Array) return tensor.data;
  throw new RootstepError("ENGINE_FAILED", { what: `the graph gives no float32 output "${name}"`, where: graph });
}
