// Component provider of the recordings on Pulumi's SDK for Node: comp:index:Pair and comp:index:Nest.
"use strict";

const pulumi = require("@pulumi/pulumi");
const sdk = require("@pulumi/pulumi/provider");

const any = { $ref: "pulumi.json#/Any" };
const text = { type: "string" };
const component = (inputs, outputs) => ({ isComponent: true, inputProperties: inputs, properties: outputs });
const SCHEMA = {
    name: "comp",
    version: "1.0.0",
    resources: {
        "comp:index:Pair": component({ value: any, secret: text }, { first: text, last: any }),
        "comp:index:Nest": component({ value: any }, { inner: any }),
    },
};

// Resource of the scripted provider.
class Thing extends pulumi.CustomResource {
    constructor(name, props, options) {
        super("rec:index:Thing", name, { ...props, out: undefined, cid: undefined }, options);
    }
}

// Component with two resources. The second depends on the first.
class Pair extends pulumi.ComponentResource {
    constructor(name, { value, secret }, options) {
        super("comp:index:Pair", name, {}, options);
        const one = new Thing(`${name}-one`, { v: value, w: secret }, { parent: this });
        const two = new Thing(`${name}-two`, { v: one.out, k: one.cid }, { parent: this });
        this.state = { first: one.cid, last: two.out };
        this.registerOutputs(this.state);
    }
}

// Component with a pair, and a resource that depends on the pair.
class Nest extends pulumi.ComponentResource {
    constructor(name, { value }, options) {
        super("comp:index:Nest", name, {}, options);
        const pair = new Pair(`${name}-pair`, { value }, { parent: this });
        const after = { parent: this, dependsOn: [pair], deleteBeforeReplace: true };
        new Thing(`${name}-tail`, { v: pair.state.last }, after);
        this.state = { inner: pair.state.last };
        this.registerOutputs(this.state);
    }
}

const TYPES = { "comp:index:Pair": Pair, "comp:index:Nest": Nest };

sdk.main(
    {
        version: "1.0.0",
        schema: JSON.stringify(SCHEMA),
        construct: async (name, type, inputs, options) => {
            if (!(type in TYPES)) {
                throw new Error(`there is no component ${type}`);
            }
            const made = new TYPES[type](name, inputs, options);
            return { urn: made.urn, state: made.state };
        },
    },
    process.argv.slice(2),
);
