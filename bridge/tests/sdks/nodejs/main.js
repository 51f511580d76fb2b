// A provider on the official Node SDK that keeps what it is given.

const { main } = require("@pulumi/pulumi/provider");

const keeper = {
  version: "1.2.3",
  check: async (_urn, _olds, news) => ({ inputs: news }),
  diff: async () => ({ changes: true, replaces: ["text"] }),
  create: async (_urn, inputs) => {
    if (inputs.fail) {
      throw new Error("the keeper refuses");
    }
    return { id: "kept", outs: inputs };
  },
  read: async (id, _urn, props) => ({ id, props }),
  update: async (_id, _urn, _olds, news) => ({ outs: news }),
  delete: async () => {},
  invoke: async (_token, args) => ({ outputs: args }),
};

main(keeper, process.argv.slice(2));
