import * as pulumi from "@pulumi/pulumi";
import * as hosting from "pulumi-hosting";

const config = new pulumi.Config();
const deploy = new hosting.SshKey("deploy", { publicKey: config.require("publicKey") });
const web = new hosting.Server("web", {
  tariffId: config.requireNumber("tariff"),
  os: "debian-12",
  months: 1,
  sshKeyIds: [deploy.id],
});

export const address = web.ip;
