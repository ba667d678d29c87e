"""What everything here is made of: values, URNs, resource states, the dependency graph, goals."""
