"""How are queries, judgements and runs written in files? One kind of file a module."""
