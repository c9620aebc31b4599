"""The only room that knows Ray: where members run, and how their embeddings come together."""
