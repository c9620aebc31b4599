"""The sections of a comparison's report, one file each; every one is made from the comparison's record alone."""
