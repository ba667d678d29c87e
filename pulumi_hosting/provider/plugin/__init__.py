"""The native provider: `pulumi-resource-hosting`, a provider plugin over Pulumi's protocol."""
