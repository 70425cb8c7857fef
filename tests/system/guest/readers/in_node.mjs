// JSON.parse: `own` reads what it returns, `assign` a copy that Object.assign makes of each object,
// `merge` what a deep merge into an empty object leaves, as many libraries have had it.
import { createInterface } from "node:readline";

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

const assigned = (value) => {
  if (Array.isArray(value)) return value.map(assigned);
  if (!isObject(value)) return value;
  const copy = Object.assign({}, value);
  for (const key of Object.keys(copy)) copy[key] = assigned(copy[key]);
  return copy;
};

const merge = (into, value) => {
  for (const key of Object.keys(value)) {
    const canHold = isObject(into[key]) || typeof into[key] === "function";
    if (isObject(value[key])) merge(canHold ? into[key] : (into[key] = {}), value[key]);
    else into[key] = value[key];
  }
  return into;
};

const merged = (value) => merge({}, value);

// `in` finds what a prototype has too: so does whoever asks for a key by its name.
const described = (value) => {
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "string") return Buffer.from(value, "utf-8").toString("hex");
  if (typeof value === "number") return ["n", Object.is(value, -0) ? "-0.0" : String(value)];
  if (Array.isArray(value)) return ["a", ...value.map(described)];
  const pairs = ["o"];
  for (const key in value) pairs.push([described(key), described(value[key])]);
  return pairs;
};

const read = { own: (value) => value, assign: assigned, merge: merged }[process.argv[2]];

const line = (hex) => {
  try {
    const whole = JSON.parse(Buffer.from(hex, "hex").toString("utf-8"));
    return isObject(whole) ? JSON.stringify(described(read(whole))) : "refused";
  } catch {
    return "refused";
  } finally {
    for (const key in {}) delete Object.prototype[key]; // what the last message has left there
  }
};

createInterface({ input: process.stdin }).on("line", (hex) => process.stdout.write(`${line(hex)}\n`));
