// Registration of a provider at sc. Pulumi's SDK prints its port and does not return it, so the provider is a process of
// its own. Needs host.proto of sc beside this file.

import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

// Runs a program that serves the provider with Pulumi's SDK, and registers the port that it prints. Ends after the program.
export async function runRegistered(name: string, version: string, program: string): Promise<void> {
  const { SC_PLUGIN_HOST: host, SC_PLUGIN_TOKEN: token, SC_PLUGIN_ENGINE: engine = "", ...env } = process.env;
  const provider = spawn(process.execPath, [program, engine], { env, stdio: ["ignore", "pipe", "inherit"] });
  process.on("SIGTERM", () => provider.kill());
  provider.on("exit", (code) => process.exit(code ?? 1));
  const output = createInterface({ input: provider.stdout });
  const [port] = await once(output, "line");
  output.on("line", (line) => console.log(line));

  const services: any = grpc.loadPackageDefinition(loadSync(join(__dirname, "host.proto")));
  const client = new services.simplecontainer.host.v1.Host(`unix:${host}`, grpc.credentials.createInsecure());
  const request = { token, name, version, protocolVersions: ["1.0"], port: Number(port) };
  client.register(request, (error: grpc.ServiceError | null) => {
    client.close();
    if (error) {
      console.error(error.details);
      provider.kill();
    }
  });
}
