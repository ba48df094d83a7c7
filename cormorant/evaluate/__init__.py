"""Is it better? Metrics and judgements; takes any callable from query to ranked ids."""
