"""N members: the seed plan, the run folder, the gather contract, folding, and the launcher that needs no Ray."""
