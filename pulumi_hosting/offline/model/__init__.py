"""The data model: property values, URNs, resource states, the dependency graph, goals."""
