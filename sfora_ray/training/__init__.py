"""One member, from its spec to its result. Neither Ray nor the tracker is known here."""
