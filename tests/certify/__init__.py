"""The proof of `pulumi-hosting certify`: deployments that depart, and those that do not."""
