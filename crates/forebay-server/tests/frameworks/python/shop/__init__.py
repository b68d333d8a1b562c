"""An application of Django, made for the program beside this folder: what its models were at first, and what they became."""
