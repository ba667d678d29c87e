// Pulumi's language hosts, from public Go modules. After this version they moved to modules of their own, which have no released version;
// the protocol between the CLI and a host has stayed compatible. The Python half of the host comes from the CLI's version (see ../build.sh).
module pulumi-hosting/tools/pulumi/hosts

go 1.24

tool (
	github.com/pulumi/pulumi/sdk/v3/nodejs/cmd/pulumi-language-nodejs
	github.com/pulumi/pulumi/sdk/v3/python/cmd/pulumi-language-python
)

require github.com/pulumi/pulumi/sdk/v3 v3.68.0
