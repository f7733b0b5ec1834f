import * as planted from "../synth/synthesize.ts";
export const used = planted;
