// Every resource once, in TypeScript, by the plugin. Its types are made from the plugin's schema.
//
//   pulumi-hosting plugin install
//   pulumi package add "$(command -v pulumi-resource-hosting)"
//   pulumi config set domain example.com
//   pulumi config set tariff 1
//   pulumi config set publicKey "$(cat ~/.ssh/id_ed25519.pub)"
//   export HOSTING_API_KEY=vk_live_… HOSTING_BASE_URL=https://api.example.org/v1
//   pulumi up
import * as pulumi from "@pulumi/pulumi";
import * as hosting from "pulumi-hosting";

const config = new pulumi.Config();
const domain = config.require("domain");

// A lookup: asked in every run, previews included. `pulumi-hosting emulator` sells tariff 1.
const tariff = hosting.getTariffOutput({ tariffId: config.requireNumber("tariff") });

const key = new hosting.SshKey("deploy", { publicKey: config.require("publicKey") });

const server = new hosting.Server("web", {
    tariffId: tariff.id,
    os: "debian-12",
    months: 1,
    sshKeyIds: [key.id],
    notes: "the shop",
    autoRenew: true,
});

// One more address, and the name each of the two resolves to.
const mail = new hosting.ServerIp("mail", { serverId: server.id }, { deletedWith: server });
new hosting.Ptr("www-ptr", { serverId: server.id, address: server.ip, domain: `www.${domain}` }, { deletedWith: server });
new hosting.Ptr("mail-ptr", { serverId: server.id, address: mail.address, domain: `mail.${domain}` }, { deletedWith: server });

// A domain cannot be deleted: destroying it turns auto-renew off and forgets it.
const name = new hosting.Domain("shop", {
    name: domain,
    years: 1,
    nameservers: [`ns1.${domain}`, `ns2.${domain}`],
    privacy: true,
    autoRenew: true,
});

const hook = new hosting.WebhookSubscription("news", {
    url: `https://hooks.${domain}/hosting`,
    events: ["server.suspended", "domain.renewed"],
});

export const addresses = [server.ip, mail.address];
export const nextDueAt = server.nextDueAt;
export const rootPassword = server.rootPassword;
export const domainExpiresAt = name.expiresAt;
export const webhookSecret = hook.secret;
export const priceMonthly = pulumi.interpolate`${tariff.priceMonthly} ${tariff.currency}`;
