"""What each command does: the rooms below, called in order. The command line and the jobs both come here."""
