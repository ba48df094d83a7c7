"""How do several retrievers answer one question together?

``legs`` asks them at once; ``duplicates`` finds what several brought; ``by_rank`` fuses;
``in_store`` has the store do all of that where it can; ``base`` is what such retrievers share.
"""
