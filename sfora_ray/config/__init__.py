"""YAML to frozen, typed records; names to components."""
