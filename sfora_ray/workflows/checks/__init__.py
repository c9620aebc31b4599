"""The questions of the doctor, by what they look at; each returns findings and changes nothing for good."""
