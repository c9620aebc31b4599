"""Trained packs as models that others load: images in, one vector out."""
