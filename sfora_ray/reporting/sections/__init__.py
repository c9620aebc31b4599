"""The report's sections, one file each; every one is made from the records of the run folder alone."""
