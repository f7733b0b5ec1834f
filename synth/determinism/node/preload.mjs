// Makes a Node program repeat itself. Node imports this first, where NODE_OPTIONS names it; it does nothing unless
// ROOTSTEP_PRELOAD is set. Dates stand still, Math.random and randomUUID are seeded; timers and performance.now go on.
import crypto, { createHash } from "node:crypto";
import { syncBuiltinESMExports } from "node:module";

const settings = process.env.ROOTSTEP_PRELOAD;
if (settings !== undefined && settings !== "") {
  const { seed, at } = JSON.parse(settings);
  // A program that this one starts draws from streams of its own, or both would make the same ids.
  process.env.ROOTSTEP_PRELOAD = JSON.stringify({ seed: `${seed}/${process.argv.slice(1).join(" ")}`, at });
  stopDates(at);
  Math.random = numbers(`${seed} random`);
  seedUuids(bytes(`${seed} ids`));
}

function stopDates(at) {
  const RealDate = Date;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, made) => Reflect.construct(target, args.length === 0 ? [at] : args, made),
    apply: (target) => new target(at).toString(), // Date() without new is the time as text, whatever its arguments
    get: (target, name, receiver) => (name === "now" ? now : Reflect.get(target, name, receiver)),
  });
  const now = () => at;
  RealDate.prototype.constructor = globalThis.Date;
  // Formats the time by itself where it is given no date.
  const formats = Intl.DateTimeFormat.prototype;
  const { get } = Object.getOwnPropertyDescriptor(formats, "format");
  Object.defineProperty(formats, "format", {
    configurable: true,
    get() {
      const format = get.call(this);
      return (date = at) => format(date);
    },
  });
  const { formatToParts } = formats;
  formats.formatToParts = function (date = at) {
    return formatToParts.call(this, date);
  };
}

/** SHA-256 in counter mode: 32 bytes a block. */
function* blocks(name) {
  for (let counter = 0; ; counter++) yield createHash("sha256").update(`${name} ${counter}`).digest();
}

/** Uniform in [0, 1), 53 bits each. */
function numbers(name) {
  const stream = blocks(name);
  return () => {
    const block = stream.next().value;
    return (block.readUInt32BE(0) * 2 ** 21 + (block.readUInt32BE(4) >>> 11)) / 2 ** 53;
  };
}

function bytes(name) {
  const stream = blocks(name);
  return (length) => stream.next().value.subarray(0, length);
}

function seedUuids(draw) {
  const randomUUID = () => {
    const id = Buffer.from(draw(16));
    id[6] = (id[6] & 0x0f) | 0x40;
    id[8] = (id[8] & 0x3f) | 0x80;
    return id.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/u, "$1-$2-$3-$4-$5");
  };
  crypto.randomUUID = randomUUID; // require("crypto")
  syncBuiltinESMExports(); // import { randomUUID } from "crypto"
  Object.defineProperty(Object.getPrototypeOf(globalThis.crypto), "randomUUID", {
    value: randomUUID,
    configurable: true,
    enumerable: true,
    writable: true,
  });
}
