"""x"""

VERB = None
