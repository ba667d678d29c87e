// Pulumi's CLI, from public Go modules.
module pulumi-hosting/tools/pulumi/cli

go 1.25

tool github.com/pulumi/pulumi/pkg/v3/cmd/pulumi

require (
	github.com/pulumi/pulumi/pkg/v3 v3.259.0
	github.com/pulumi/pulumi/sdk/v3 v3.259.0 // pkg's own go.mod replaces it by a folder, which `go install` refuses: hence this module
)
