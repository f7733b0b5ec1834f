// tsc writes plain files; `npx rootstep` in a checkout runs the bin itself, so it must be executable. Part of `npm run build`.
import { chmodSync } from "node:fs";

chmodSync(new URL("../dist/src/cli/bin.js", import.meta.url), 0o755);
