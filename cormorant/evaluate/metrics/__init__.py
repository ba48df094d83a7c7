"""How good is one ranked list? One metric a file, each with its formula and its source."""
