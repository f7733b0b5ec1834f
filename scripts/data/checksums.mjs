#!/usr/bin/env node
// Checksum manifests of the shipped data sets.
//   node scripts/data/checksums.mjs            rewrites data/*/manifest.json from the files that lie there
//   node scripts/data/checksums.mjs --verify   compares, exits 1 and names each file that differs
// src/formats/shipped-data.ts checks the same manifests at run time.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const DATA = fileURLToPath(new URL("../../data", import.meta.url));

const SETS = {
  gsm8k: {
    title: "GSM8K grade school math problems: the test set, and the first 200 problems of the training set",
    source:
      "https://github.com/openai/grade-school-math/tree/3101c7d5072418e28b9008a6636bde82a006892c/grade_school_math/data",
    licence: "MIT (LICENSE)",
    groups: {},
  },
  hotpotqa: {
    title: "HotpotQA: 100 questions of the development set with their paragraphs (distractor setting)",
    source:
      "https://hotpotqa.github.io, through https://github.com/noahshinn/reflexion/blob/218cf0ef1df84b05ce379dd4a8e47f17766733a0/hotpotqa_runs/data/hotpot-qa-distractor-sample.joblib",
    licence: "CC BY-SA 4.0 (LICENSE)",
    groups: {},
  },
  math: {
    title: "templated problems in the layout of MATH",
    source: "scripts/data/math.py",
    licence: "MIT (LICENSE)",
    groups: {},
  },
  mbppplus: {
    title: "MBPP+: 376 Python functions with tests of MBPP and EvalPlus",
    source: "https://github.com/evalplus/mbppplus_release v0.2.0, MbppPlus.jsonl.gz",
    licence: "Apache-2.0 (LICENSE); problems of MBPP: CC BY 4.0",
    groups: {},
  },
  who_and_when: {
    title: "Who&When: failed runs of multi-agent systems with the decisive agent and step",
    source:
      "https://github.com/ag2ai/Agents_Failure_Attribution/tree/f4d2b6da464a826580e59b3a0eae15ea2d642d7c/Who%26When",
    licence: "MIT (LICENSE)",
    groups: { "Algorithm-Generated": "Algorithm-Generated/", "Hand-Crafted": "Hand-Crafted/" },
  },
};

const sha256 = (content) => createHash("sha256").update(content).digest("hex");

/** Relative paths of all files below a folder, sorted by code unit; the manifest itself and dot files aside. */
function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith("."))
    .map((entry) =>
      join(entry.parentPath ?? entry.path, entry.name)
        .slice(folder.length + 1)
        .replaceAll("\\", "/"),
    )
    .filter((path) => path !== "manifest.json")
    .sort();
}

function manifestOf(name) {
  const { groups, ...about } = SETS[name];
  const folder = join(DATA, name);
  const files = Object.fromEntries(
    filesBelow(folder).map((path) => {
      const content = readFileSync(join(folder, path));
      return [path, { sha256: sha256(content), bytes: content.length }];
    }),
  );
  // One checksum for a part of the set: over its lines "sha256  path\n", as sha256sum prints them.
  const combined = (prefix) =>
    sha256(
      Object.entries(files)
        .filter(([path]) => path.startsWith(prefix))
        .map(([path, file]) => `${file.sha256}  ${path}\n`)
        .join(""),
    );
  const parts = Object.fromEntries(Object.entries(groups).map(([part, prefix]) => [part, combined(prefix)]));
  return { ...about, combined: { all: combined(""), ...parts }, files };
}

const verify = process.argv.includes("--verify");
let differing = 0;
for (const name of Object.keys(SETS)) {
  const file = join(DATA, name, "manifest.json");
  const now = manifestOf(name);
  if (!verify) {
    writeFileSync(file, `${JSON.stringify(now, null, 1)}\n`);
    console.log(`data/${name}/manifest.json: ${Object.keys(now.files).length} files`);
    continue;
  }
  const kept = JSON.parse(readFileSync(file, "utf8"));
  const paths = new Set([...Object.keys(now.files), ...Object.keys(kept.files)]);
  const wrong = [...paths].filter((path) => now.files[path]?.sha256 !== kept.files[path]?.sha256);
  for (const path of wrong) console.error(`data/${name}/${path}: differs from its manifest`);
  if (wrong.length === 0 && JSON.stringify(now) !== JSON.stringify(kept)) {
    wrong.push("manifest.json");
    console.error(`data/${name}/manifest.json: is not what this script writes`);
  }
  differing += wrong.length;
  if (wrong.length === 0) console.log(`data/${name}: ${paths.size} files as in the manifest`);
}
process.exitCode = differing === 0 ? 0 : 1;
