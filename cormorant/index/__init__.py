"""Row, give me a score: vectors, text and metadata, one folder each."""
