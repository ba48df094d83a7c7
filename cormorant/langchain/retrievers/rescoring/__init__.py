"""What comes first, once something besides the question counts?

``relevance`` is where a hit starts, from 0 to 1; ``base`` is what retrievers with a formula share;
``moments`` reads dates; ``memories`` and ``accesses`` know what was asked for lately.
"""
