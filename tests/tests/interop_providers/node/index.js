// Provider on Pulumi's SDK for Node, which stores resources as files.
//
// The SDK accepts secrets in their wire format, and supports no previews. `tests/src/sdk_providers/provider_home.rs`
// describes the files of the provider.
"use strict";

const crypto = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const sdk = require("@pulumi/pulumi/provider");
const typescript = require("@pulumi/pulumi/typescript-shim");

const compilerOptions = { module: typescript.ModuleKind.CommonJS };
require.extensions[".ts"] = (module, file) => {
    const source = fs.readFileSync(file, "utf8");
    module._compile(typescript.transpileModule(source, { compilerOptions }).outputText, file);
};
const failures = require("./failures.ts");
const { runRegistered } = require("./registration.ts");

const HOME = process.env.PEER_HOME;
const KEPT = ["v", "k", "secret"];
const SIGNATURE = "4dabf18193072939515e22adb298388d";
const SECRET = "1b47061264138c4ac30d75fd1eb44270";

const text = { type: "string" };
const inputs = { v: text, k: { ...text, willReplaceOnChanges: true }, secret: { ...text, secret: true } };
const SCHEMA = {
    name: "peernode",
    version: "1.0.0",
    resources: {
        "peernode:index:Thing": {
            inputProperties: { ...inputs, delay: { type: "number" } },
            properties: { v: text, k: text, secret: { ...text, secret: true }, delay: { type: "number" }, out: text },
        },
    },
};

const isSecret = (value) => value instanceof Object && value[SIGNATURE] === SECRET;
const plain = (value) => (isSecret(value) ? value.value : value);
const asSecret = (value) => ({ [SIGNATURE]: SECRET, value });
const nameOf = (urn) => urn.slice(urn.lastIndexOf("::") + 2);
const file = (id) => path.join(HOME, "things", `${id}.json`);
const outputs = (bag) => ({ ...bag, out: `made of ${plain(bag.v)}` });

// Handles a call and records it at its end, with the form of the secret instead of its value.
async function noted(call, urn, id, bag, work) {
    const note = { call, name: nameOf(urn), id, preview: false, secret: how(bag), pid: process.pid, begin: Date.now() };
    const result = await work();
    const line = JSON.stringify({ ...note, id: result?.id ?? id, end: Date.now() });
    fs.appendFileSync(path.join(HOME, "calls.jsonl"), line + "\n");
    return result;
}

function how(bag) {
    return bag.secret === undefined ? "absent" : isSecret(bag.secret) ? "wrapped" : "plain";
}

function keep(id, bag) {
    const kept = KEPT.filter((key) => key in bag).map((key) => [key, plain(bag[key])]);
    fs.writeFileSync(file(id), JSON.stringify(Object.fromEntries(kept)));
}

// Calls that have failed as busy.
const failed = new Set();

// Fails the first of the calls whose property is `busy`.
function failOnce(call, bag, key) {
    if (bag[key] === "busy" && !failed.has(call)) {
        failed.add(call);
        throw failures.busy(`${call} must wait`, 100);
    }
}

const things = {
    version: "1.0.0",
    schema: JSON.stringify(SCHEMA),

    check: (urn, olds, news) =>
        noted("Check", urn, "", news, async () => {
            failOnce("Check", news, "v");
            if (news.v === "bad") {
                throw failures.invalid("the thing is refused", "v", "must be good");
            }
            const missing = "v" in news ? [] : [{ property: "v", reason: "missing required input v" }];
            return { inputs: news, failures: missing };
        }),

    diff: (id, urn, olds, news) =>
        noted("Diff", urn, id, news, async () => {
            const changed = KEPT.filter((key) => plain(olds[key]) !== plain(news[key]));
            return { changes: changed.length > 0, replaces: changed.filter((key) => key === "k") };
        }),

    create: (urn, bag) =>
        noted("Create", urn, "", bag, async () => {
            await new Promise((resolve) => setTimeout(resolve, bag.delay ?? 0));
            const id = `${nameOf(urn)}-${crypto.randomBytes(4).toString("hex")}`;
            keep(id, bag);
            return { id, outs: outputs(bag) };
        }),

    read: (id, urn, props) =>
        noted("Read", urn, id, props, async () => {
            if (!fs.existsSync(file(id))) {
                return { id: "", props: {} };
            }
            const { out, ...known } = props;
            const live = JSON.parse(fs.readFileSync(file(id), "utf8"));
            if ("secret" in live) {
                live.secret = asSecret(live.secret);
            }
            const bag = { ...known, ...live };
            return { id, props: outputs(bag), inputs: bag };
        }),

    update: (id, urn, olds, news) =>
        noted("Update", urn, id, news, async () => {
            keep(id, news);
            return { outs: outputs(news) };
        }),

    delete: (id, urn, props) =>
        noted("Delete", urn, id, props, async () => {
            failOnce("Delete", props, "k");
            fs.unlinkSync(file(id));
        }),
};

if (process.env.SC_PLUGIN_HOST) {
    runRegistered("peernode", things.version, __filename);
} else {
    sdk.main(things, process.argv.slice(2));
}
